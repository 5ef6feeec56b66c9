// Common parts of `collage bench`: its flags, and one model at one set of shapes, compiled and
// timed.
#pragma once

#include <optional>

#include "artifact.h"
#include "dynamic_model.h"
#include "measure/noise_gate.h"
#include "options.h"
#include "report/report.h"
#include "rivals.h"
#include "runtime/executor.h"

namespace collage::tool {

struct BenchOptions : SharedOptions {
  std::vector<std::string> compare;     // other runtimes
  std::vector<std::string> partitions;  // likewise of --compare: files
  double duration = 3;                  // seconds a runtime
  int streams = 0;                      // 0: latency of single inferences
  bool layers = false;
};

// Seconds that a bench may wait for a quiet machine, beyond the time it runs.
constexpr double kSecondsForQuiet = 10;
constexpr int kWarmUps = 2;  // untimed runs before each block

// A program of the user's own: of a module, which may state its kernels, or an artifact's.
struct OwnPartition {
  std::string file;
  std::optional<Program> compiled;
  std::optional<OpenedArtifact> opened;
  std::vector<Tensor> outputs = {};
  Executor& executor() { return compiled ? *compiled->impl().executor : opened->executor; }
};

struct TimedModel {
  Model model;
  Program program;
  std::optional<Executor> alone;  // the best single backend's program, where that is timed too
  std::vector<Tensor> inputs, outputs;
  Rivals rivals;
  RunFacts facts;
  std::vector<OwnPartition> partitions = {};
};

// Returns the gate that timing uses.
NoiseGate gate_of(const Program& program);

// bench_turns.cc: compiles the model and runs blocks of it in turns with those of other runtimes.
Result<TimedModel> time_in_turns(Model model, const BenchOptions& options);
// bench_streams.cc: does the same for several inferences at a time.
Result<TimedModel> time_streams(Model model, const BenchOptions& options);
// bench_staged.cc: times whole runs in turns, and prints the results. kUsage: a flag needs one
// plan.
Status bench_staged(StagedProgram& staged, const BenchOptions& options);

}  // namespace collage::tool
