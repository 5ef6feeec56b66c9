// DataflowGraph: a graph function's body as dense indices. Nodes are numbered in post-dfs order
// over variables, constants, calls, tuples, projections and called function literals: if i < j,
// node j cannot influence node i.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/index_set.h"
#include "ir/expr.h"

namespace collage {

using PostDfsIndex = size_t;

class DataflowGraph {
 public:
  struct Node {
    PostDfsIndex index = 0;
    Expr expr;
    std::vector<PostDfsIndex> inputs;   // in argument order, repeats kept
    std::vector<PostDfsIndex> outputs;  // users, ascending, each once
    bool is_external = false;           // it is (a field of) the function's result
  };

  explicit DataflowGraph(Function function);

  const Function& function() const { return function_; }
  size_t size() const { return nodes_.size(); }
  const Node& node(PostDfsIndex index) const { return nodes_[index]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  PostDfsIndex index_of(const Expr& expr) const { return index_.at(expr.get()); }
  // Nodes reachable from `index` following uses (downstream) or inputs (upstream), itself excluded.
  const IndexSet& downstream(PostDfsIndex index) const { return downstream_[index]; }
  const IndexSet& upstream(PostDfsIndex index) const { return upstream_[index]; }

 private:
  Function function_;
  std::vector<Node> nodes_;
  std::unordered_map<const ExprNode*, PostDfsIndex> index_;
  std::vector<IndexSet> downstream_, upstream_;
};

}  // namespace collage
