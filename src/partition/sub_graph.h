// SubGraph: a set of nodes 'inside' a sub-graph of a DataflowGraph, without building any
// expression. The inside determines the
//   entry nodes   inside, with an input outside        input nodes    outside, feeding the inside
//   exit nodes    inside, used outside or the result   output nodes   outside, fed from the inside
// Constants are never inside, so that candidates may share one: extraction copies those that inside
// nodes read into the kernel, or makes parameters of those that are not required. Sub-graphs are
// closed under disjoint union, labelling and substitution.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "partition/dataflow_graph.h"

namespace collage {

struct SubGraphConfig {
  size_t max_depth = 0;     // most operator calls on a path from an entry to an exit; 0: no limit
  size_t max_exits = 1;     // 0: no limit
  bool allow_taps = false;  // an exit may also be used inside
  size_t max_kernel_depth = 0;  // as max_depth, but views do not count
};

// Which constants an extracted function holds; the others are parameters.
enum class ConstantsInside {
  kAll,       // what backends compile: they prepack constants
  kRequired,  // single numbers, and what the sub-graph insists on
};

// Returns the operator or function that is called, or the function's "Composite" label; for a
// kernel that states its variant (stated_kernels.h) the operators inside.
std::string call_label(const Expr& call);

class SubGraph {
 public:
  // A labelled sub-graph inside this one, extracted as a function with that "Composite" attribute.
  struct Nested {
    std::string label;
    std::shared_ptr<const SubGraph> sub_graph;
  };

  // `required`: constants that extraction always copies.
  SubGraph(const DataflowGraph& graph, IndexSet inside, FusionKind kind, std::string label = "",
           std::vector<Nested> nested = {}, IndexSet required = {});
  // The kind is the largest of the calls'.
  static SubGraph of(const DataflowGraph& graph, IndexSet inside, std::string label = "");

  const IndexSet& inside() const { return inside_; }
  FusionKind kind() const { return kind_; }
  const std::string& label() const { return label_; }
  const std::vector<Nested>& nested() const { return nested_; }
  const IndexSet& entry() const { return entry_; }
  const IndexSet& exit() const { return exit_; }
  const IndexSet& input() const { return input_; }  // constants excluded
  const IndexSet& output() const { return output_; }
  const IndexSet& required() const { return required_; }
  // Most operator calls on a path, and most that need a kernel.
  struct Depth {
    size_t calls = 0, kernels = 0;
  };
  Depth depth(const DataflowGraph& graph) const;

  // Checks that it is convex (no path leaves and re-enters), with tensors alone at its boundary
  // (except the result of a call that gives a tuple), and within the config's limits. `why`
  // receives the reason if not.
  bool is_valid(const DataflowGraph& graph, const SubGraphConfig& config,
                std::string* why = nullptr) const;
  bool is_convex(const DataflowGraph& graph) const;

  // Requires these constants too.
  SubGraph with_required(const IndexSet& constants) const;

  // Both must be disjoint. The kind is the larger one, nested ones are kept, labels joined by '+'.
  // Takes time by what lies at their boundaries.
  SubGraph disjoint_union(const DataflowGraph& graph, const SubGraph& other) const;
  // Returns this sub-graph as one nested, labelled sub-graph of a new one over the same nodes.
  SubGraph labelled(const DataflowGraph& graph, std::string label) const;
  // Maps indices into another graph; every inside index must be in the map.
  SubGraph substitute(const DataflowGraph& new_graph,
                      const std::unordered_map<PostDfsIndex, PostDfsIndex>& map) const;

  // Returns what the extracted function takes: the inputs, and the constants that it does not hold.
  IndexSet parameters(const DataflowGraph& graph, ConstantsInside constants) const;
  // Returns the sub-graph as a function: one parameter per node of parameters() in ascending index,
  // a result that is the single exit's value or a tuple of all exits in ascending index; nested
  // sub-graphs as calls of functions with "Composite". `attrs` are the function's.
  Function extract(const DataflowGraph& graph, Attrs attrs = {},
                   ConstantsInside constants = ConstantsInside::kAll) const;
  // Returns operator names of the calls inside, in order: "nn.conv2d+add+nn.relu".
  std::string ops_label(const DataflowGraph& graph) const;

 private:
  // Finds which of `nodes` are at the boundary, and what lies beyond.
  void find_boundary(const DataflowGraph& graph, const IndexSet& nodes);

  IndexSet inside_, entry_, exit_, input_, output_, required_;
  FusionKind kind_;
  std::string label_;
  std::vector<Nested> nested_;
};

}  // namespace collage
