#include "report/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/statistics.h"
#include "base/stopwatch.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int kWarmUps = 2;

// The variant and the ONNX nodes of a kernel, as far as they fit a line.
std::string describe(const ReportedPlan::Kernel& kernel) {
  std::string text = kernel.variant.name;
  for (const ReportedPlan::Kernel::OpRef& op : kernel.ops)
    text += " " + (op.onnx_node.empty() ? op.op : op.onnx_node);
  return text;
}

std::string shape_of(const std::vector<TensorType>& types) {
  return types.empty() ? std::string() : shape_to_string(types[0].shape);
}

}  // namespace

Result<Profile> profile_layers(internal::CompiledProgram& program, std::span<const Tensor> inputs,
                               int runs) {
  std::map<std::string, LayerTime> known;
  for (const ReportedPlan::Kernel& kernel : program.report.kernels) {
    LayerTime layer{kernel.name,
                    kernel.target,
                    "",
                    0,
                    median_seconds(kernel.cost),
                    kernel.flops,
                    kernel.bytes,
                    least_work(kernel.function, kernel.variant)};
    layer.what = shape_of(kernel.outputs) + " " + describe(kernel);
    known[kernel.name] = std::move(layer);
  }
  for (const ReportedConversion& conversion : program.report.conversions) {
    LayerTime layer{conversion.name, "", "", 0, median_seconds(conversion.cost), 0, 0, {}};
    layer.bytes = 2.0 * static_cast<double>(conversion.type.bytes());
    layer.work = least_work_of_conversion(conversion.type, conversion.from, conversion.to);
    layer.what = shape_to_string(conversion.type.shape) + " " + conversion.from.to_string() +
                 " to " + conversion.to.to_string();
    known[conversion.name] = std::move(layer);
  }
  Profile profile;
  profile.constant_bytes = model_constant_bytes(program.report.kernels);
  std::vector<Tensor> outputs(program.outputs.size());
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUps; ++i) TRY(program.executor->run(inputs, outputs));
  for (int i = 0; i < runs; ++i) {
    const Stopwatch watch;
    TRY(program.executor->run_profiled(inputs, outputs, seconds));
    profile.whole_runs.push_back(watch.seconds());
    profile.runs.push_back(seconds);
  }
  const std::vector<Step>& steps = program.executor->plan().steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    LayerTime layer = known[steps[s].name];
    layer.name = steps[s].name;
    std::vector<double> samples;
    for (const std::vector<double>& run : profile.runs) samples.push_back(run[s]);
    layer.seconds = median(samples);
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

std::string layers_table(const Profile& profile, const MachinePeaks& peaks) {
  std::vector<size_t> order(profile.layers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return profile.layers[a].seconds > profile.layers[b].seconds;
  });
  double total = 0, predicted = 0, bound = 0;
  for (const LayerTime& layer : profile.layers) {
    total += layer.seconds;
    predicted += layer.predicted_seconds;
    bound += roof_of(peaks, layer.work, profile.constant_bytes).seconds;
  }
  std::string text = fmt::format("{:>4} {:>9} {:>9} {:>6} {:>8} {:>7}  of roof      {}\n", "step",
                                 "ms", "predicted", "share", "GFLOP/s", "GB/s", "kernel");
  for (size_t i : order) {
    const LayerTime& layer = profile.layers[i];
    double seconds = std::max(layer.seconds, 1e-9);
    const Roof roof = roof_of(peaks, layer.work, profile.constant_bytes);
    text += fmt::format(
        "{:>4} {:>9.4f} {:>9.4f} {:>5.1f}% {:>8.1f} {:>7.1f} {:>4.0f}% {:<8} {}  {}\n", i,
        1e3 * layer.seconds, 1e3 * layer.predicted_seconds, 100 * layer.seconds / total,
        1e-9 * layer.flops / seconds, 1e-9 * layer.bytes / seconds, 100 * roof.seconds / seconds,
        roof.bound, layer.name, layer.what);
  }
  text +=
      fmt::format("{} steps {:.3f} ms, predicted {:.3f} ms, a run {:.3f} ms", profile.layers.size(),
                  1e3 * total, 1e3 * predicted, 1e3 * median(profile.whole_runs));
  text += fmt::format(", roofline {:.3f} ms at {:.0f} GFLOP/s", 1e3 * bound,
                      1e-9 * peaks.flops_per_second);
  for (const auto& [unit, operations] : peaks.unit_operations_per_second)
    text += fmt::format(", {} {:.0f}", unit, 1e-9 * operations);
  for (const MemoryLevel& level : peaks.levels)
    text += fmt::format(", {} {:.1f} GB/s", level.name, 1e-9 * level.bytes_per_second);
  return text + "\n";
}

}  // namespace collage
