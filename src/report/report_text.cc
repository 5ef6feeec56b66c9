#include <collage/report.h>

#include "base/no_exceptions.h"
#include "report/explain.h"
#include "report/html_page.h"
#include "report/read_report.h"
#include "report/report.h"
#include "runtime/thread_team.h"

namespace collage {

Result<std::string> report_text(const Model& model, const Program& program,
                                const RunRecord& record) {
  return without_exceptions([&]() -> Result<std::string> {
    RunFacts facts;
    facts.threads = ThreadTeam(record.threads).size();
    facts.compile_seconds =
        record.compile_seconds + model.impl().import_seconds + model.impl().simplify_seconds;
    facts.samples = record.run_seconds;
    return report_json(model, program.impl().report, facts)
        .dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
}

Result<std::string> explain_report(const std::string& report, const std::string& kernel) {
  return without_exceptions([&]() -> Result<std::string> {
    const nlohmann::json parsed = TRY(parse_report(report, "report"));
    if (kernel.empty()) return explain_plan(parsed);
    return explain_kernel(parsed, *TRY(find_kernel(parsed, kernel)));
  });
}

Result<std::string> report_page(const std::string& report) {
  return without_exceptions(
      [&]() -> Result<std::string> { return html_page(TRY(parse_report(report, "report"))); });
}

}  // namespace collage
