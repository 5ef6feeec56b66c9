#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kBlocks = 5;        // that a run is cut into, to see how it wanders
constexpr size_t kLeastSamples = 8;  // for the test's normal approximation

// How far the medians of a run's blocks lie from the run's median, relative to it.
double wander(const std::vector<double>& samples) {
  if (samples.size() < 2 * kBlocks) return 0;
  std::vector<double> medians;
  for (size_t b = 0; b < kBlocks; ++b) {
    auto at = [&](size_t i) { return samples.begin() + static_cast<ptrdiff_t>(i); };
    medians.push_back(
        median({at(b * samples.size() / kBlocks), at((b + 1) * samples.size() / kBlocks)}));
  }
  std::sort(medians.begin(), medians.end());
  // The largest and the smallest are left out: a disturbance of one block is not the run's.
  return (medians[kBlocks - 2] - medians[1]) / 2 / median(samples);
}

Result<std::vector<double>> samples_of(const json& report, const char* which) {
  std::vector<double> samples;
  if (report.contains("latency_ms"))
    samples = report["latency_ms"]["samples"].get<std::vector<double>>();
  if (samples.size() < kLeastSamples)
    return bad_model(
        "the {} report holds {} latencies, and {} are needed: write it with collage bench --json",
        which, samples.size(), kLeastSamples);
  return samples;
}

// What a kernel computes, as far as two reports can agree on it.
std::string operators_of(const json& kernel) {
  std::string text;
  for (const json& op : kernel["ops"]) {
    std::string name = op["onnx_node"].get<std::string>();
    text += (text.empty() ? "" : " ") + (name.empty() ? op["op"].get<std::string>() : name);
  }
  return text;
}

double cost_ms(const json& kernel) {
  const json& cost = kernel["cost_ms"];
  return cost.is_null() ? 0 : cost["median"].get<double>();
}

std::string line_of(const json& kernel) {
  return fmt::format("{}  {}  {:.4f} ms", kernel["name"].get<std::string>(),
                     kernel["variant"].get<std::string>(), cost_ms(kernel));
}

bool intervals_overlap(const json& a, const json& b) {
  return a["p10"].get<double>() <= b["p90"].get<double>() &&
         b["p10"].get<double>() <= a["p90"].get<double>();
}

bool differ(const json& a, const json& b, double effect) {
  if (a["target"] != b["target"] || a["variant"] != b["variant"]) return true;
  const json &x = a["cost_ms"], &y = b["cost_ms"];
  if (x.is_null() || y.is_null()) return x.is_null() != y.is_null();
  return std::abs(cost_ms(b) - cost_ms(a)) > effect * cost_ms(a) && !intervals_overlap(x, y);
}

void compare_kernels(const json& before, const json& after, const DiffOptions& options,
                     ReportDiff& diff) {
  // Kernels without names may be alike: they are matched in the order they stand in.
  std::multimap<std::string, const json*> old;
  for (const json& kernel : before["kernels"]) old.emplace(operators_of(kernel), &kernel);
  for (const json& kernel : after["kernels"]) {
    std::string ops = operators_of(kernel);
    auto match = old.lower_bound(ops);
    if (match == old.end() || match->first != ops) {
      diff.kernels.push_back({ops, "", line_of(kernel), cost_ms(kernel)});
      continue;
    }
    const json& other = *match->second;
    if (differ(other, kernel, options.kernel_effect)) {
      diff.kernels.push_back(
          {ops, line_of(other), line_of(kernel), cost_ms(kernel) - cost_ms(other)});
    } else {
      ++diff.equal_kernels;
    }
    old.erase(match);
  }
  for (const auto& [ops, kernel] : old)
    diff.kernels.push_back({ops, line_of(*kernel), "", -cost_ms(*kernel)});
  std::stable_sort(diff.kernels.begin(), diff.kernels.end(), [](const auto& a, const auto& b) {
    return std::abs(a.milliseconds) > std::abs(b.milliseconds);
  });
}

}  // namespace

Result<ReportDiff> diff_reports(const json& before, const json& after, const DiffOptions& options) {
  ReportDiff diff;
  std::vector<double> a = TRY(samples_of(before, "first")), b = TRY(samples_of(after, "second"));
  diff.before_ms = median(a);
  diff.after_ms = median(b);
  diff.change = diff.after_ms / diff.before_ms - 1;
  diff.noise = std::max(options.smallest_effect, wander(a) + wander(b));
  diff.p = mann_whitney(a, b);
  if (diff.p < options.significance && std::abs(diff.change) > diff.noise)
    diff.verdict = diff.change > 0 ? ReportDiff::Verdict::kSlower : ReportDiff::Verdict::kFaster;
  for (const char* key : {"model", "model_sha256"})
    if (before[key] != after[key]) {
      diff.notes.push_back("the models differ");
      break;
    }
  if (before["env"]["cpu"] != after["env"]["cpu"]) diff.notes.push_back("the processors differ");
  if (before["env"]["threads"] != after["env"]["threads"])
    diff.notes.push_back("the numbers of threads differ");
  for (const auto& [name, version] : after["env"]["versions"].items())
    if (nlohmann::json(before["env"]["versions"].value(name, "")) != version)
      diff.notes.push_back("the versions of " + name + " differ");
  compare_kernels(before, after, options, diff);
  return diff;
}

std::string to_text(const ReportDiff& diff) {
  constexpr const char* kVerdicts[] = {"no change beyond noise", "faster", "slower"};
  std::string text;
  for (const std::string& note : diff.notes) text += "note: " + note + "\n";
  text += fmt::format("latency {:.3f} ms -> {:.3f} ms, {:+.1f}% (noise {:.1f}%, p {:.2g}): {}\n",
                      diff.before_ms, diff.after_ms, 100 * diff.change, 100 * diff.noise, diff.p,
                      kVerdicts[static_cast<int>(diff.verdict)]);
  text += fmt::format("kernels {} alike, {} changed\n", diff.equal_kernels, diff.kernels.size());
  for (const KernelChange& kernel : diff.kernels) {
    text += fmt::format("{:+.4f} ms  {}\n", kernel.milliseconds, kernel.ops);
    if (!kernel.before.empty()) text += "  - " + kernel.before + "\n";
    if (!kernel.after.empty()) text += "  + " + kernel.after + "\n";
  }
  return text;
}

}  // namespace collage
