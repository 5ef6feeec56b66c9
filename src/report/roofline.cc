#include "report/roofline.h"

#include <algorithm>
#include <unordered_set>

#include "ir/visitor.h"

namespace collage {

namespace {

// Bytes that come from each level, in the order of the levels.
std::vector<double> activations_by_level(const std::vector<MemoryLevel>& levels, double bytes) {
  std::vector<double> from;
  for (const MemoryLevel& level : levels) {
    from.push_back(std::min(bytes, level.bytes));
    bytes -= from.back();
  }
  return from;
}

std::vector<double> constants_by_level(const std::vector<MemoryLevel>& levels, double bytes,
                                       double model_constants) {
  std::vector<double> from;
  double kept = 0;  // by faster levels, as a part
  for (const MemoryLevel& level : levels) {
    const double holds = std::min(1.0, level.bytes / std::max(model_constants, 1.0));
    const double part = std::min(holds, 1 - kept);
    from.push_back(part * bytes);
    kept += part;
  }
  return from;
}

// Of a unit, as multiply-adds counted twice a second; 0: there is no figure.
double peak_of(const MachinePeaks& peaks, const std::string& unit) {
  if (unit == "float32") return peaks.flops_per_second;
  const auto own = peaks.unit_operations_per_second.find(unit);
  if (own != peaks.unit_operations_per_second.end()) return own->second;
  if (unit != "any") return 0;
  double best = peaks.flops_per_second;
  for (const auto& [name, operations] : peaks.unit_operations_per_second)
    best = std::max(best, operations);
  return best;
}

}  // namespace

double model_constant_bytes(std::span<const ReportedPlan::Kernel> kernels) {
  std::unordered_set<const void*> known;
  double bytes = 0;
  for (const ReportedPlan::Kernel& kernel : kernels)
    for (const Expr& expr : post_order(kernel.function->body)) {
      const auto* constant = as<ConstantNode>(expr);
      if (constant != nullptr && known.insert(constant->value.raw()).second)
        bytes += static_cast<double>(constant->value.bytes());
    }
  return bytes;
}

void raise_memory_peak(MachinePeaks& peaks, double bytes_per_second) {
  for (MemoryLevel& level : peaks.levels)
    level.bytes_per_second = std::max(level.bytes_per_second, bytes_per_second);
}

Roof roof_of(const MachinePeaks& peaks, const LeastWork& work, double model_constants) {
  Roof roof;
  auto takes = [&](double seconds, const std::string& bound) {
    if (seconds > roof.seconds) roof = {seconds, bound};
  };
  if (const double peak = peak_of(peaks, work.unit); peak > 0)
    takes(work.operations / peak, work.unit);
  const std::vector<double> activations = activations_by_level(peaks.levels, work.activations);
  const std::vector<double> constants =
      constants_by_level(peaks.levels, work.constants, model_constants);
  double passing = 0;
  for (size_t i = peaks.levels.size(); i-- > 0;) {
    passing += activations[i] + constants[i];
    takes(passing / peaks.levels[i].bytes_per_second, peaks.levels[i].name);
  }
  return roof;
}

}  // namespace collage
