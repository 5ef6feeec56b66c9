// A report that `--json` wrote, read back. A file is as untrusted as a model: what this returns has
// the form that docs/report-schema.json fixes.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace collage {

// kBadModel: no file, no JSON, or not of that form; the message says where.
Result<nlohmann::json> read_report(const std::filesystem::path& path);
// The same of its text; errors say that it came from `origin`.
Result<nlohmann::json> parse_report(const std::string& text, const std::string& origin);

}  // namespace collage
