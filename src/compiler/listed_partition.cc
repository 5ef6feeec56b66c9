#include "compiler/listed_partition.h"

#include "choose/candidates.h"
#include "ir/visitor.h"
#include "partition/lightweight.h"
#include "partition/rewrite.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

ListedPartition::Kernel list_kernel(const DataflowGraph& graph, std::string name,
                                    std::string target, const SubGraph& sub_graph) {
  ListedPartition::Kernel listed{std::move(name), std::move(target), {}, 0};
  sub_graph.inside().for_each([&](PostDfsIndex i) {
    const auto* call = as<CallNode>(graph.node(i).expr);
    if (call != nullptr && call->op != nullptr)
      listed.calls.emplace_back(tensor_program::name_of_call(*call), i);
  });
  return listed;
}

}  // namespace

std::vector<ListedPartition::Kernel> list_kernels(const DataflowGraph& graph,
                                                  const std::vector<CandidatePartition>& kernels,
                                                  const std::vector<std::string>& names) {
  std::vector<ListedPartition::Kernel> listed;
  for (size_t k = 0; k < kernels.size(); ++k)
    listed.push_back(
        list_kernel(graph, names[k], kernels[k].spec->target.to_string(), kernels[k].sub_graph));
  return listed;
}

Result<ListedPartition> partition_without_costs(const Module& module,
                                                const std::vector<PartitionSpecPtr>& specs) {
  ListedPartition result;
  result.costs = "none";
  result.module = module;
  for (const auto& [name, function] : module.functions) {
    if (function->attrs.has("Primitive")) continue;
    DataflowGraph graph(untangle_tuples(function));
    TRY(check_no_scopes(graph));
    std::vector<CandidatePartition> found = TRY(checked_candidates(graph, specs));
    result.candidates += found.size();
    result.truncated += count_truncated(found);
    std::vector<CandidatePartition> kernels = partition_lightly(graph, std::move(found));
    result.kept += kernels.size();
    WriteOptions options;
    options.function = name;
    WrittenKernels written =
        TRY(write_kernels(graph, kernels_to_write(kernels), result.module, options));
    result.module = std::move(written.module);
    for (ListedPartition::Kernel& kernel : list_kernels(graph, kernels, written.names))
      result.kernels.push_back(std::move(kernel));
  }
  return result;
}

}  // namespace collage
