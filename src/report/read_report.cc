#include "report/read_report.h"

#include "base/files.h"
#include "measure/task.h"
#include "report/embedded.h"
#include "report/json_schema.h"

namespace collage {

using nlohmann::json;

Result<json> parse_report(const std::string& text, const std::string& origin) {
  json report = parse_json(text);
  if (report.is_null()) return bad_model("{}: is no JSON", origin);
  static const json kSchema = json::parse(report_file("report-schema.json"));
  if (std::string wrong = schema_violation(report, kSchema); !wrong.empty())
    return bad_model("{}: is no report of this version of collage: {}", origin, wrong);
  return report;
}

Result<json> read_report(const std::filesystem::path& path) {
  return parse_report(TRY(read_file(path)), path.string());
}

}  // namespace collage
