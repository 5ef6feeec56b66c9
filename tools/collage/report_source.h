// Where `explain` and `view` take a report from: a file that --json wrote, a model that is compiled
// now, or one that is partitioned by a configuration's mock costs.
#pragma once

#include "options.h"
#include "report/report.h"

namespace collage::tool {

class ReportSource {
 public:
  // `timed`: whether a compiled program is run, for its timeline and its memory.
  static Result<ReportSource> open(const SharedOptions& options, bool timed);

  const nlohmann::json& report() const { return report_; }
  // Adds to the report's `what_if` what the same with one more flag (--exclude, --pin) is predicted
  // to take. A report from a file has no model to ask.
  void ask(const std::string& flag, const std::string& value);
  // Asks it of leaving out each target, and of giving everything to it.
  void ask_each_target();

 private:
  nlohmann::json report_;
  SharedOptions options_;
  std::function<Result<CoverPrediction>(const SharedOptions&)> predict_;  // null: from a file
  std::optional<double> without_flags_;  // seconds, once it was asked
};

// A regular expression that matches these names and no others.
std::string exactly(const std::vector<std::string>& names);
// For a report: one run's steps, the memory that runs take, and what the machine could do at most.
Status add_timeline(Program& program, std::span<const Tensor> inputs, RunFacts& facts);

}  // namespace collage::tool
