// The compiler: model in, program out, with everything the report wants to know on the way.
//
//   load      import (ONNX or Relay text), simplify
//   compile   candidates of every target, their costs, search, the best covers timed end to end,
//   the fastest lowered to a plan
#pragma once

#include <collage/collage.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "artifact/program_impl.h"
#include "base/progress.h"
#include "choose/choose_cover.h"
#include "cost/measured_costs.h"
#include "ir/module.h"
#include "runtime/executor.h"

namespace collage {

struct ImportedModel;
struct ImportOptions;

namespace internal {

struct ModelImpl {
  std::filesystem::path path;
  Module module;  // simplified; "main" is the model
  // As imported, where it holds float16 or bfloat16: `module` computes in float32 what this does in
  // them (passes/widen_halves.h).
  std::optional<Module> in_halves;
  std::vector<TensorInfo> inputs, outputs;
  double import_seconds = 0, simplify_seconds = 0;
  bool unverified = false;  // a user made it
  bool is_part = false;     // of a program (compile_control.h), which dumps what is asked for
};

}  // namespace internal

// An alternative that was considered for one kernel of the chosen cover: same nodes, other target
// or variant.
struct Alternative {
  std::string target, variant;
  Cost cost;  // Invalid carries the reason
};

struct ReportedConversion {
  std::string name;
  TensorType type;
  Encoding from, to;
  Cost cost;
  TensorRef tensor = {};         // of the graph
  double predicted_seconds = 0;  // its part of the prediction
};

// A cover as one sees it. Kernels and conversions are those of single-backend covers; the chosen
// one's stand in the report itself.
struct ReportedPlan : CoverTiming {
  struct Kernel {
    std::string name, target;
    Variant variant;
    struct OpRef {
      std::string op, onnx_node;
      PostDfsIndex index;
    };
    std::vector<OpRef> ops;
    std::vector<PostDfsIndex> nodes;  // all it computes, views and tuples included
    Function function;                // the same
    Cost cost;
    double predicted_seconds = 0;  // its part of the prediction, launch and charges included
    std::vector<TensorType> inputs, outputs;
    std::vector<Alternative> alternatives;
    double flops = 0;
    double bytes = 0;  // parameters, constants and results, each once
  };
  std::string name = {};    // "cover 1" … or the backend of a single-backend cover
  std::string origin = {};  // the variation that it was searched for (choose/cover_variations.h)
  bool single_backend = false, chosen = false;
  std::vector<Kernel> kernels = {};
  std::vector<ReportedConversion> conversions = {};
};

// What a variation of the search gave.
struct ReportedVariation {
  size_t searches = 0, covers = 0, chosen = 0;
};

// A node of the graph that was partitioned, constants left out.
struct ReportedNode {
  PostDfsIndex index = 0;
  std::string op, onnx_node;  // op: "input", "tuple", "item" where it is no call
  std::vector<PostDfsIndex> inputs;
  std::vector<TensorType> outputs;
  bool is_result = false;
};

// A target's way to run some nodes, whether it was chosen or not: its cheapest variant, or why
// there is none.
struct ReportedCandidate {
  std::string target, variant;
  std::vector<PostDfsIndex> nodes;
  Cost cost;
};

// A tensor that moves between two steps of the plan, or between one and the caller ("").
struct ReportedEdge {
  std::string from, to;
  TensorType type;
  Encoding encoding;
};

// What lies in the arena and when: from the step that writes it to the last that reads it.
struct ReportedSlot {
  std::string step;  // that writes it
  bool workspace = false;
  size_t offset = 0, bytes = 0, first = 0, last = 0;
};

struct CompileReport {
  std::string processor;  // that it is for
  std::vector<std::string> targets;
  std::vector<ReportedPlan::Kernel> kernels;
  std::vector<ReportedConversion> conversions;
  std::vector<ReportedPlan> covers;
  std::map<std::string, ReportedVariation> variations;  // by ReportedPlan::origin
  double predicted_seconds = 0, lower_bound_seconds = 0;
  double correction_seconds = 0;  // of the prediction: all but the sum of isolated costs
  double isolated_seconds = 0;    // that sum: kernels and conversions, each measured alone
  double overlap_seconds = 0;     // of it, that devices save by computing side by side
  // The sum by what the kernels take inside the model, switches between thread pools included, and
  // the ratio to isolated costs (in_situ_ratio.h): no prediction. 0: not measured.
  double in_situ_seconds = 0, in_situ_ratio = 0;
  size_t switches = 0;                              // of the chosen cover, between thread pools
  CacheState cache_state = CacheState::kStreaming;  // in which its kernels were timed
  // That all threads read from memory, at the quickest moment while costs were measured; 0: nobody
  // looked.
  double memory_bytes_per_second = 0;
  CoreState usual_cores;  // in quiet moments, as far as they are known
  bool exact = false;     // the cheapest cover is proven to be so, among the candidates found
  double gap = 0;         // what it may be too dear by, as a part of it
  bool light = false;     // nothing was searched or measured (light_cover.h)
  SearchCounts searches;
  size_t candidates = 0, pruned = 0, functions = 0;
  size_t truncated = 0;  // of the candidates: those that limits of their rules cut short
  CostCounts estimates;
  std::map<std::string, double>
      phase_seconds;  // "candidates", "costs", "search", "covers", "checking", "in situ" and some
  struct Rejection {
    std::string node, backend, reason;
  };
  std::vector<Rejection> rejections;
  size_t arena_bytes = 0;                  // the host's
  std::vector<DeviceArena> device_arenas;  // of other devices
  std::vector<ReportedNode> nodes;
  std::vector<ReportedCandidate> considered;
  std::vector<ReportedEdge> edges;
  std::vector<ReportedSlot> arena;
  Module partitioned;  // compiles again to the same kernels (partition/stated_kernels.h)
  // Of the timed single-backend covers, the fastest; empty name when none was.
  std::string best_single_backend;
  double best_single_seconds = 0;
};

namespace internal {

// What Program::compile makes of a model (Program::impl).
struct CompiledProgram : FixedProgram {
  // `made`: of the plan, for the program's own runs.
  CompiledProgram(std::shared_ptr<const Plan> plan, Executor made, int threads);
  Status save(const std::filesystem::path& path, const std::string& signing_key) override;
  Executor* executor;
  bool any_threads = false;           // nobody chose the threads
  double max_error = 0;               // that it was compiled with
  std::vector<std::string> features;  // that its code is for; empty: this processor's
  CompileReport report;
  bool keeps_weights = true;  // in what the report holds
};

}  // namespace internal

Result<Model> load_model(const std::filesystem::path& path, const LoadOptions& options);
// What the importer of ONNX heeds of them.
ImportOptions import_options(const LoadOptions& options);
// What was imported as a model, simplified.
Result<Model> simplified_model(ImportedModel imported);
// A module as a model, as it is: inputs named as parameters of @main.
Model model_of(const Module& module);
// A file of Relay text as it is, not simplified. Constants that are given by their type only are
// made without values, and `unknown` receives their storage.
Result<Module> load_text_as_is(const std::filesystem::path& path,
                               std::unordered_set<const void*>& unknown, bool positions = false);
// `progress` hears of long work; it may be null.
Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress = nullptr);

// The program of the single-backend cover that a report names (best_single_backend), from what the
// compilation of that report measured; none where the search alone does not give it again (it was
// lowered).
Result<std::optional<Executor>> compile_alone(const Model& model, const ProgramOptions& options,
                                              const std::string& backend);

// What the cheapest cover is predicted to take: the search of compile_model, and nothing after it.
Result<CoverPrediction> predict_seconds(const Model& model, const ProgramOptions& options,
                                        Progress* progress = nullptr);

}  // namespace collage
