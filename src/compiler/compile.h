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
#include <vector>

#include "compiler/lowering.h"
#include "compiler/progress.h"
#include "cost/measured_costs.h"
#include "ir/module.h"
#include "runtime/executor.h"

namespace collage {

namespace internal {

struct ModelImpl {
  std::filesystem::path path;
  Module module;  // simplified; "main" is the model
  std::vector<TensorInfo> inputs, outputs;
  double import_seconds = 0, simplify_seconds = 0;
};

}  // namespace internal

// An alternative that was considered for one kernel of the chosen cover: same nodes, other target
// or variant.
struct Alternative {
  std::string target, variant;
  Cost cost;  // Invalid carries the reason
};

struct ReportedKernel {
  std::string name, target;
  Variant variant;
  struct OpRef {
    std::string op, onnx_node;
    PostDfsIndex index;
  };
  std::vector<OpRef> ops;
  Function function;  // what it computes
  Cost cost;
  std::vector<TensorType> inputs, outputs;
  std::vector<Alternative> alternatives;
  double flops = 0;
  double bytes = 0;  // parameters, constants and results, each once
};

struct ReportedConversion {
  std::string name;
  TensorType type;
  Encoding from, to;
  Cost cost;
};

// A cover that was timed end to end.
struct TimedCover {
  std::string name;  // "cover 1" … or the backend of a single-backend cover
  bool single_backend = false;
  double predicted_seconds = 0;
  std::optional<Measured> measured;
  std::string failure;  // why it could not be timed
  bool chosen = false;
};

struct CompileReport {
  std::vector<std::string> targets;
  std::vector<ReportedKernel> kernels;
  std::vector<ReportedConversion> conversions;
  std::vector<TimedCover> covers;
  double predicted_seconds = 0, lower_bound_seconds = 0;
  bool exact = false;  // the cheapest cover is proven to be so
  double gap = 0;      // what it may be too dear by, as a part of it
  bool light = false;  // boundaries were not searched, nothing was measured (light_cover.h)
  size_t search_states = 0, candidates = 0, functions = 0;
  CostCounts estimates;
  std::map<std::string, double>
      phase_seconds;  // "candidates", "costs", "search", "lower", "covers"
  struct Rejection {
    std::string node, backend, reason;
  };
  std::vector<Rejection> rejections;
  size_t arena_bytes = 0;
  Module partitioned;
  // Of the timed single-backend covers, the fastest; empty name when none was.
  std::string best_single_backend;
  double best_single_seconds = 0;
};

namespace internal {

struct ProgramImpl {
  std::vector<TensorInfo> inputs, outputs;
  std::optional<Executor> executor;
  CompileReport report;
};

}  // namespace internal

Result<Model> load_model(const std::filesystem::path& path, const LoadOptions& options);
// `progress` hears of long work; it may be null.
Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress = nullptr);

}  // namespace collage
