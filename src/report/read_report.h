// Reads a report that `--json` wrote. The file is untrusted: the result has the form that
// docs/report-schema.json fixes.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace collage {

// kBadModel: there is no file, it is malformed, or not of that form; the message states the place.
Result<nlohmann::json> read_report(const std::filesystem::path& path);
// Parses its text; errors state that it came from `origin`.
Result<nlohmann::json> parse_report(const std::string& text, const std::string& origin);

}  // namespace collage
