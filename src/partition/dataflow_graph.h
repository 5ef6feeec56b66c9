// DataflowGraph: a graph function's body as dense indices. Nodes are numbered in post-dfs order
// over variables, constants, calls, tuples, projections and called function literals (operator
// references have no number): if i < j, node j cannot influence node i.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/index_set.h"
#include "ir/expr.h"

namespace collage {

using PostDfsIndex = size_t;

class StatedKernels;
class StatedPlaces;
class StatedTargets;

class DataflowGraph {
 public:
  struct Node {
    PostDfsIndex index = 0;
    Expr expr;
    std::vector<PostDfsIndex> inputs;   // in argument order, repeats kept
    std::vector<PostDfsIndex> outputs;  // users, ascending, each once
    bool is_external = false;           // it is (a field of) the function's result
  };
  static constexpr PostDfsIndex kNone = ~PostDfsIndex{0};

  explicit DataflowGraph(Function function);

  const Function& function() const { return function_; }
  size_t size() const { return nodes_.size(); }
  const Node& node(PostDfsIndex index) const { return nodes_[index]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  bool contains(const Expr& expr) const { return index_.count(expr.get()) != 0; }
  PostDfsIndex index_of(const Expr& expr) const { return index_.at(expr.get()); }
  PostDfsIndex index_of(const ExprNode* expr) const { return index_.at(expr); }
  // Nodes reachable from `index` following uses (downstream) or inputs (upstream), itself excluded.
  const IndexSet& downstream(PostDfsIndex index) const { return downstream_[index]; }
  const IndexSet& upstream(PostDfsIndex index) const { return upstream_[index]; }
  // Returns the nearest node that every path from `index` to a result goes through; kNone if there
  // is none (a result itself, or paths to different results).
  PostDfsIndex post_dominator(PostDfsIndex index) const { return post_dominator_[index]; }
  // What the function states of its nodes (stated_kernels.h, stated_places.h, stated_targets.h).
  const StatedKernels& stated_kernels() const { return *stated_kernels_; }
  const StatedPlaces& stated_places() const { return *stated_places_; }
  const StatedTargets& stated_targets() const { return *stated_targets_; }

 private:
  Function function_;
  std::vector<Node> nodes_;
  std::unordered_map<const ExprNode*, PostDfsIndex> index_;
  std::vector<IndexSet> downstream_, upstream_;
  std::vector<PostDfsIndex> post_dominator_;
  std::shared_ptr<const StatedKernels> stated_kernels_;
  std::shared_ptr<const StatedPlaces> stated_places_;
  std::shared_ptr<const StatedTargets> stated_targets_;
};

// The role of a node for kernels. Constants (and called functions) are copied into the kernels that
// read them. Variables, tuples, projections and views need no kernel: the host passes buffers
// along; a view's input and result are plain.
enum class NodeRole { kConstant, kVariable, kTuple, kProjection, kView, kKernel };
NodeRole node_role(const Expr& expr);
inline NodeRole node_role(const DataflowGraph& graph, PostDfsIndex index) {
  return node_role(graph.node(index).expr);
}

// Returns the same function with one consumer for every tuple and no projection of a tuple that is
// made in the function: candidates need this, since a kernel takes and gives tensors only.
Function untangle_tuples(const Function& function);

}  // namespace collage
