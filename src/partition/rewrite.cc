#include "partition/rewrite.h"

#include <unordered_map>

#include "base/name_supply.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// Builds new expressions from the results back to the parameters: a kernel is made when one of its
// exits is asked for, so nothing is built that no result needs.
class Partitioner {
 public:
  Partitioner(const DataflowGraph& graph, std::span<const CandidatePartition* const> kernels)
      : graph_(graph), kernels_(kernels), symbols_(kernels.size()) {
    NameSupply names;
    for (size_t k = 0; k < kernels.size(); ++k) {
      const SubGraph& sub_graph = kernels[k]->sub_graph;
      symbols_[k] = names.fresh(symbol(*kernels[k]));
      sub_graph.exit().for_each([&](PostDfsIndex i) { kernel_of_exit_.emplace(i, k); });
    }
  }

  Result<Function> run() {
    PostDfsIndex root = graph_.size() - 1;
    std::vector<PostDfsIndex> stack = {root};
    while (!stack.empty()) {
      PostDfsIndex index = stack.back();
      if (values_.count(index) != 0) {
        stack.pop_back();
        continue;
      }
      std::vector<PostDfsIndex> needed = needs(index);
      size_t before = stack.size();
      for (PostDfsIndex need : needed)
        if (values_.count(need) == 0) stack.push_back(need);
      if (stack.size() == before) {
        TRY(build(index));
        stack.pop_back();
      } else if (stack.size() > graph_.size() * (graph_.size() + 1)) {
        return internal_error("the chosen kernels depend on one another in a cycle");
      }
    }
    const Function& function = graph_.function();
    return make_function(function->params, values_.at(root), function->attrs);
  }

 private:
  std::string symbol(const CandidatePartition& kernel) const {
    std::string ops = kernel.sub_graph.ops_label(graph_);
    constexpr size_t kMaxName = 80;
    if (ops.size() > kMaxName) ops = ops.substr(0, ops.find('+', kMaxName / 2));
    return "collage_" + kernel.spec->target.kind + "_" + ops;
  }

  std::vector<PostDfsIndex> needs(PostDfsIndex index) const {
    auto it = kernel_of_exit_.find(index);
    if (it == kernel_of_exit_.end()) return graph_.node(index).inputs;
    return kernels_[it->second]->sub_graph.input().elements();
  }

  Status build(PostDfsIndex index) {
    auto it = kernel_of_exit_.find(index);
    if (it == kernel_of_exit_.end()) {
      std::vector<Expr> inputs;
      bool same = true;
      const DataflowGraph::Node& node = graph_.node(index);
      for (PostDfsIndex input : node.inputs) {
        inputs.push_back(values_.at(input));
        same = same && inputs.back() == graph_.node(input).expr;
      }
      values_[index] = same ? node.expr : TRY(with_inputs(node.expr, inputs));
      return {};
    }
    const CandidatePartition& kernel = *kernels_[it->second];
    Function function = kernel.function(graph_);
    Attrs attrs = function->attrs;
    attrs.set("global_symbol", symbols_[it->second]);
    std::vector<Expr> args;
    kernel.sub_graph.input().for_each([&](PostDfsIndex i) { args.push_back(values_.at(i)); });
    Expr call =
        TRY(make_function_call(make_function(function->params, function->body, attrs), args));
    std::vector<size_t> exits = kernel.sub_graph.exit().elements();
    for (size_t k = 0; k < exits.size(); ++k)
      values_[exits[k]] =
          exits.size() == 1 ? call : TRY(make_tuple_get_item(call, static_cast<int64_t>(k)));
    return {};
  }

  const DataflowGraph& graph_;
  std::span<const CandidatePartition* const> kernels_;
  std::vector<std::string> symbols_;
  std::unordered_map<PostDfsIndex, size_t> kernel_of_exit_;
  std::unordered_map<PostDfsIndex, Expr> values_;
};

}  // namespace

Result<Function> partition_function(const DataflowGraph& graph,
                                    std::span<const CandidatePartition* const> kernels) {
  return Partitioner(graph, kernels).run();
}

}  // namespace collage
