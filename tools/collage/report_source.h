// The source of the report for `explain` and `view`: a file that --json wrote, a model that is
// compiled now, or one that is partitioned by a configuration's mock costs.
#pragma once

#include "compiler/mock_partition.h"
#include "options.h"
#include "report/report.h"

namespace collage::tool {

class ReportSource {
 public:
  // `timed`: whether a compiled program is run, for its timeline and its memory.
  static Result<ReportSource> open(const SharedOptions& options, bool timed);

  const nlohmann::json& report() const { return report_; }
  // Adds the predicted time with one more flag (--exclude, --pin) to the report's `what_if`. A
  // report from a file has no model for that.
  void ask(const std::string& flag, const std::string& value);
  // Asks that for leaving out each target, and for giving everything to it.
  void ask_each_target();

 private:
  nlohmann::json report_;
  SharedOptions options_;
  std::function<Result<CoverPrediction>(const SharedOptions&)> predict_;  // null: from a file
  std::optional<double> without_flags_;  // seconds, once it was asked
};

// Reads text as it is written, and other models simplified. `unknown`, `positions`: as
// load_text_as_is.
Result<Model> load_as_written(const SharedOptions& options,
                              std::unordered_set<const void*>& unknown, bool positions = false);
// Partitions by the configuration's mock costs, with the flags' constraints.
Result<MockPartition> mock_partition(Module module, const SharedOptions& options,
                                     const PartitionConfig& config, bool keep_search = false);

// Returns a regular expression that matches these names and no others.
std::string exactly(const std::vector<std::string>& names);
// Adds to a report one run's steps, the memory that runs take, and the machine's peaks.
Status add_timeline(Program& program, std::span<const Tensor> inputs, RunFacts& facts);

}  // namespace collage::tool
