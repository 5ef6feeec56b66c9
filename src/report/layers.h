// The time of one inference by layers: every step of a plan timed inside whole runs, as a table.
#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"
#include "report/roofline.h"

namespace collage {

// One step of the plan: a kernel of the report, a conversion or a copy.
struct LayerTime {
  std::string name, target, what;  // `what`: the variant and the ONNX nodes
  double seconds = 0;              // median over the profiled runs
  double predicted_seconds = 0;    // 0: not predicted (copies)
  double flops = 0, bytes = 0;     // 0 if they are not counted
  LeastWork work = {};             // what its time is held against
};

struct Profile {
  std::vector<LayerTime> layers;          // in the order they run
  std::vector<std::vector<double>> runs;  // seconds of each layer in each profiled run
  std::vector<double> whole_runs;         // seconds of each profiled run as its caller sees it
  double constant_bytes = 0;              // of the model
};

// Runs the program `runs` times after two untimed runs. Reading the clock twice a kernel is part of
// the times (about 50 ns).
Result<Profile> profile_layers(internal::CompiledProgram& program, std::span<const Tensor> inputs,
                               int runs);

// Returns a line a layer, the slowest first, with its share and the part of its time that `peaks`
// explain.
std::string layers_table(const Profile& profile, const MachinePeaks& peaks);

}  // namespace collage
