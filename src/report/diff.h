// Compares two reports of one model: whether the later one is slower beyond noise, and which
// kernels changed.
//
// Latencies are compared by the Mann-Whitney test on their samples. Samples of one run are not
// independent (a machine is fast for a while, then slow for a while), so the test alone would
// separate any two runs: a change must also exceed a smallest relevant effect, and the variation of
// the medians of each run's blocks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

struct DiffOptions {
  double smallest_effect = 0.02;  // of the latency; less is never a regression
  double significance = 0.001;    // of the test
  double kernel_effect = 0.05;    // of a kernel's cost, to be listed
};

struct KernelChange {
  std::string ops;            // the operators, by ONNX node where they have one
  std::string before, after;  // "name  target variant cost"; empty: not in that report
  double milliseconds = 0;    // after less before, of the predicted costs
};

struct ReportDiff {
  enum class Verdict { kSame, kFaster, kSlower };
  Verdict verdict = Verdict::kSame;
  double before_ms = 0, after_ms = 0;  // medians
  double change = 0;                   // of the median, relative
  double noise = 0;                    // what a change must exceed
  double p = 1;                        // of the Mann-Whitney test
  std::vector<KernelChange> kernels;   // the largest change first
  size_t equal_kernels = 0;
  std::vector<std::string> notes;  // what makes the two hard to compare
};

// Both have passed the schema (read_report). kBadModel: one holds no latencies.
Result<ReportDiff> diff_reports(const nlohmann::json& before, const nlohmann::json& after,
                                const DiffOptions& options = {});
std::string to_text(const ReportDiff& diff);

}  // namespace collage
