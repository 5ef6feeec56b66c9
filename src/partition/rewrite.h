// Rewriting a function so that each chosen sub-graph becomes a kernel of its own: what
// `collage partition` prints. Expressions are made backwards, from the results to the parameters,
// so that no kernel invalidates another one, whatever their order.
//
//   def @collage_hook_nn_relu(%FunctionVar_0: …, Compiler="hook", Primitive=1,
//                             global_symbol="collage_hook_nn_relu") { … }
//   def @main(%x: …) { @collage_hook_nn_relu(%x) }
#pragma once

#include <span>

#include "base/result.h"
#include "ir/module.h"
#include "partition/candidate.h"

namespace collage {

// Every kernel an inline Primitive function with a global_symbol. `kernels` are disjoint (views and
// projections excepted) and depend on one another without a cycle; they may be given in any order.
// Calls outside all of them stay as they are. Symbols are unique within the function.
// Each function also has the attributes in `attrs`, one entry a kernel, where there are any.
Result<Function> partition_function(const DataflowGraph& graph,
                                    std::span<const CandidatePartition* const> kernels,
                                    std::span<const Attrs> attrs = {});

// The same by the kind of target, as module functions: `name` is the rewritten function.
//   a target with a compiler   a global function: Primitive, Compiler, global_symbol
//   a target without           an inline Primitive function; of one operator alone: a call as it
//   was the host                   calls as they were
// Each kernel's global symbol or, where it has none, its operators' name is given back in `names`.
struct PartitionedModule {
  Module module;
  std::vector<std::string> names;  // one a kernel, in the given order
};
Result<PartitionedModule> partition_module(const DataflowGraph& graph,
                                           std::span<const CandidatePartition* const> kernels,
                                           ConstantsInside constants, const Module& module = {},
                                           const std::string& name = "main");

// The same where every kernel is a global function, whatever its target, that also has these
// attributes: one entry a kernel.
Result<Module> claim_kernels(const DataflowGraph& graph,
                             std::span<const CandidatePartition* const> kernels,
                             std::span<const Attrs> attrs, const Module& module,
                             const std::string& name);

}  // namespace collage
