// collage diff: two reports of `bench --json` compared; status 7 where the second is slower beyond
// noise.

#include "report/diff.h"

#include <fmt/format.h>

#include "options.h"
#include "report/read_report.h"

namespace collage::tool {

namespace {

struct Arguments {
  std::string before, after;
};

Status diff(const Arguments& arguments) {
  nlohmann::json before = TRY(read_report(arguments.before));
  nlohmann::json after = TRY(read_report(arguments.after));
  ReportDiff result = TRY(diff_reports(before, after));
  fmt::print("{}", to_text(result));
  if (result.verdict == ReportDiff::Verdict::kSlower)
    return error(ErrorCode::kRegression, "{} is slower than {} by {:.1f}%, beyond noise",
                 arguments.after, arguments.before, 100 * result.change);
  return {};
}

}  // namespace

Command add_diff(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("diff", "compare two reports; status 7 where the second is slower");
  command->add_option("BEFORE", arguments->before, "a report of bench --json")->required();
  command->add_option("AFTER", arguments->after, "another one, of the same model")->required();
  return {command, [arguments] { return diff(*arguments); }};
}

}  // namespace collage::tool
