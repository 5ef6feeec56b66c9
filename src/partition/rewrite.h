// Writes a partition into a module: each chosen sub-graph becomes a kernel whose attributes
// describe it. All partitions are written here. Expressions are made backwards, from the results to
// the parameters, so that no kernel invalidates another one, whatever their order.
//
//   def @collage_hook_nn_relu(%FunctionVar_0: …, Compiler="hook", Primitive=1,
//                             global_symbol="collage_hook_nn_relu") { … }
//   def @main(%x: …) { @collage_hook_nn_relu(%x) }
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "partition/candidate.h"

namespace collage {

// The form of a kernel in the module.
enum class KernelForm {
  // By the kind of target:
  //   with a compiler   a global function: Primitive, Compiler, global_symbol
  //   without           an inline Primitive function; of one operator alone: a call as it was
  //   the host          calls as they were
  kByTarget,
  kGlobal,  // a global function with a global_symbol, whatever the target
  kInline,  // an inline Primitive function with a global_symbol
};

struct KernelToWrite {
  const CandidatePartition* partition;
  Attrs attrs = {};  // that its function has besides
};
std::vector<KernelToWrite> kernels_to_write(const std::vector<CandidatePartition>& partitions,
                                            const Attrs& attrs = {});

struct WriteOptions {
  KernelForm form = KernelForm::kByTarget;
  ConstantsInside constants = ConstantsInside::kAll;
  std::string function = "main";  // that is rewritten
  Attrs attrs = {};               // that it has besides
};

struct WrittenKernels {
  Module module;
  // One name a kernel, in the given order: its global symbol or, without one, its operators' name.
  std::vector<std::string> names;
};

// Returns the module with these kernels in the function of the graph, which states no longer what
// it kept targets away from. `kernels` are disjoint (views and projections excepted) and depend on
// one another without a cycle, in any order. Calls outside all of them stay. Symbols are unique
// within the module.
Result<WrittenKernels> write_kernels(const DataflowGraph& graph,
                                     std::span<const KernelToWrite> kernels, const Module& module,
                                     const WriteOptions& options = {});

}  // namespace collage
