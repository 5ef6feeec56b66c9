#include <fmt/format.h>

#include <algorithm>

#include "base/percent.h"
#include "base/statistics.h"
#include "report/report.h"

namespace collage {

namespace {

int decimals(double ms) { return ms < 0.01 ? 5 : ms < 1 ? 3 : ms < 10 ? 2 : 1; }

std::string milliseconds(double seconds) {
  double ms = seconds * 1e3;
  return fmt::format("{:.{}f} ms", ms, decimals(ms));
}

}  // namespace

std::string refused_for_failures(const CostCounts& counts) {
  std::string text;
  for (const auto& [count, words] : {std::pair{counts.crashed, "crashed"},
                                     {counts.silent, "gave no sign of life"},
                                     {counts.out_of_memory, "ran out of memory"},
                                     {counts.lacking, "lacked what the machine could not give"}})
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, words);
  if (text.empty()) return text;
  return "refused kernels: " + text +
         " (collage explain says which; collage db prune refused has them tried again)";
}

namespace {

// Of a plan that nothing was measured for.
std::string way_to_faster(const CompileReport& report) {
  const std::string origin = report.covers.empty() ? "" : report.covers[0].origin;
  if (origin == kFirstAnswer) return "a first answer: --budget SECONDS measures, as does tune";
  if (origin == kKnownPlan) return "as chosen before";
  return "one choice: --effort max searches and measures";
}

std::string shares_and_prediction(const Model& model, const CompileReport& report,
                                  const RunFacts& facts) {
  struct Share {
    size_t ops = 0, kernels = 0;
    double seconds = 0;
  };
  std::map<std::string, Share> shares;
  for (const ReportedPlan::Kernel& kernel : report.kernels) {
    Share& share = shares[kernel.target];
    share.ops += kernel.ops.size();
    ++share.kernels;
    share.seconds += median_seconds(kernel.cost);
  }
  std::vector<std::pair<std::string, Share>> by_time(shares.begin(), shares.end());
  std::sort(by_time.begin(), by_time.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = model.impl().path.stem().string() + " ";
  for (const auto& [target, share] : by_time)
    text += fmt::format(" {} {} {} in {} {}{} ·", target, share.ops, share.ops == 1 ? "op" : "ops",
                        share.kernels, share.kernels == 1 ? "kernel" : "kernels",
                        report.light ? "" : " " + milliseconds(share.seconds));
  double converting = 0;
  for (const ReportedConversion& conversion : report.conversions)
    converting += median_seconds(conversion.cost);
  text += report.conversions.empty()
              ? std::string(" no conversions")
              : fmt::format(" conversions {}{}", report.conversions.size(),
                            report.light ? "" : ", " + milliseconds(converting));
  text += report.light ? "\nnot searched, nothing measured beforehand"
                       : "\npredicted " + milliseconds(report.predicted_seconds);
  if (!report.light && (report.exact || report.lower_bound_seconds > 0))
    text += fmt::format(
        " ({}{})", report.exact ? "exact search" : "search within " + percent_text(report.gap),
        report.truncated > 0 ? fmt::format(", {} candidates truncated", report.truncated) : "");
  if (!report.light) text += ", isolated costs " + milliseconds(report.isolated_seconds);
  if (report.overlap_seconds > 0)
    text += ", " + milliseconds(report.overlap_seconds) + " of them side by side";
  if (report.in_situ_ratio > 0) text += ", in situ " + milliseconds(report.in_situ_seconds);
  if (facts.is_first_run) {
    text += ", first run " + milliseconds(facts.samples.at(0));
  } else if (!facts.samples.empty()) {
    const double latency = median(facts.samples);
    text += fmt::format(", measured {} ± {:.{}f}", milliseconds(latency),
                        1e3 * (percentile(facts.samples, 0.9) - percentile(facts.samples, 0.1)) / 2,
                        decimals(1e3 * latency));
  }
  if (report.light) return text + " · " + way_to_faster(report);
  if (std::none_of(report.covers.begin(), report.covers.end(),
                   [](const ReportedPlan& cover) { return cover.measured.has_value(); }))
    return text + " · one toolchain: --effort max times whole covers too";
  if (report.best_single_backend.empty()) return text + " · no single backend covers this model";
  if (facts.alone)
    return text + fmt::format(" · best single backend: {} {} · {:.2f}x", facts.alone->name,
                              milliseconds(median(facts.alone->samples)),
                              facts.alone->speed_up.ratio);
  // No ratio: the chosen cover was the best of all then, so it would never be below 1.
  return text + fmt::format(" · best single backend: {} {} while compiling",
                            report.best_single_backend, milliseconds(report.best_single_seconds));
}

}  // namespace

std::string summary(const Model& model, const CompileReport& report, const RunFacts& facts) {
  const std::string refused = refused_for_failures(report.estimates);
  return shares_and_prediction(model, report, facts) + (refused.empty() ? "" : "\n" + refused);
}

}  // namespace collage
