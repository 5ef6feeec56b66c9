// Lowering: makes a Plan of a chosen cover of the graph: compiles every kernel on its target,
// inserts conversions where a kernel needs a tensor in an encoding that does not exist yet, makes
// views aliases and tensors that a kernel joins or cuts in place parts of one another, and lays out
// all intermediate buffers in one arena.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "partition/candidate.h"
#include "runtime/plan.h"
#include "search/cover.h"

namespace collage {

struct LoweredConversion {
  std::string step;  // name in the plan
  TensorType type;
  Encoding from, to;
  TensorRef tensor = {};
};

// Returns the name of a kernel's step, before names are made unique.
std::string step_name(const DataflowGraph& graph, const SubGraph& sub_graph, const Target& target);

struct LoweredPlan {
  std::shared_ptr<Plan> plan;
  std::vector<std::string> kernel_names;  // of the cover's kernels, in its order: the step's name
  std::vector<Function> functions;        // likewise: what it computes
  std::vector<LoweredConversion> conversions;
  std::vector<VirtualDevice> inputs_at, outputs_at;  // where the caller has them (StatedPlaces)
};

// The backend's name that converts, or an error; and its cost, to choose between sources.
struct ConversionChoice {
  std::string backend;
  double seconds = 0;
};
using ConversionChooser = std::function<Result<ConversionChoice>(
    const TensorType&, const Encoding& from, const Encoding& to)>;
// Compiles one kernel. The compiler passes one that shares kernels between plans of the same
// process.
using KernelCompiler = std::function<Result<std::shared_ptr<Kernel>>(
    const Function&, const CandidatePartition&, const Variant&)>;

struct LoweringOptions {
  CompileOptions compile;
  std::vector<std::string> input_names, output_names;
  ConversionChooser choose_conversion;
  KernelCompiler compile_kernel;
};

// `cover` holds every call of the problem's graph that needs a kernel, once; its kernels stand in
// any order. Its conversions say what each tensor is converted from, as the search reckoned; where
// they say nothing, from the cheapest encoding in which it exists.
Result<LoweredPlan> lower(const SearchProblem& problem, const Cover& cover,
                          const LoweringOptions& options);

}  // namespace collage
