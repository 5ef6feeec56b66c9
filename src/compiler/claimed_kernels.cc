#include "compiler/claimed_kernels.h"

#include "partition/gather.h"
#include "partition/lightweight.h"
#include "partition/rewrite.h"
#include "partition/rules/df_pattern.h"
#include "partition/stated_kernels.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

// Whether it holds a call of a kernel that somebody decided on.
bool calls_kernel(const DataflowGraph& graph, const CandidatePartition& candidate) {
  bool found = false;
  candidate.sub_graph.inside().for_each(
      [&](PostDfsIndex i) { found = found || called_primitive(graph.node(i).expr) != nullptr; });
  return found;
}

// Of each function that is no kernel itself, the spec's candidates that fit together, with these
// attributes. The constraints are for this claim alone.
Result<Module> claim(const Module& module, const PartitionSpecPtr& spec,
                     const TargetConstraints& constraints, const Attrs& attrs) {
  Module result = module;
  TRY(tensor_program::link_programs(result));  // calls that rules and patterns know
  const Module annotated = constraints.annotated(result);
  for (const auto& [name, function] : annotated.functions) {
    if (function->attrs.has("Primitive")) continue;
    const DataflowGraph graph(untangle_tuples(function));
    TRY(graph.stated_targets().status());
    TRY(check_no_scopes(graph));
    const std::vector<PartitionSpecPtr> specs = {spec};
    std::vector<CandidatePartition> found = gather_candidates(graph, specs);
    std::erase_if(
        found, [&](const CandidatePartition& candidate) { return calls_kernel(graph, candidate); });
    const std::vector<CandidatePartition> kernels = partition_lightly(graph, std::move(found));
    if (kernels.empty()) continue;
    WriteOptions writing;
    writing.form = KernelForm::kGlobal;
    writing.function = name;
    writing.attrs = result.functions.at(name)->attrs;
    result = TRY(write_kernels(graph, kernels_to_write(kernels, attrs), result, writing)).module;
  }
  return result;
}

}  // namespace

Result<Module> claim_for_target(const Module& module, const PartitionSpecPtr& spec,
                                const TargetConstraints& constraints) {
  return claim(module, spec, constraints, {{"Compiler", toolchain_of(*spec)}});
}

Result<Module> claim_matches(const Module& module, const DFPattern& pattern,
                             const std::string& label, const std::string& compiler) {
  const auto spec = std::make_shared<const PartitionSpec>(
      PartitionSpec{label, std::make_shared<const DFPatternPartitionRule>(label, pattern),
                    Target{label, {}, {}}});
  Attrs attrs{{"Composite", label}};
  if (!compiler.empty()) attrs.set("Compiler", compiler);
  return claim(module, spec, {}, attrs);
}

}  // namespace collage
