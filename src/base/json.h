// JSON that others wrote: files, database rows, lines of another process. What handles JSON values
// (copies, prints, compares) goes down them recursively, so nesting is limited before they exist.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace collage {

// Null where the text is no JSON or nests too deep.
nlohmann::json parse_json(std::string_view text);

inline constexpr int kMaxJsonDepth = 128;  // of lists and objects inside one another
bool nests_too_deep(std::string_view json);

}  // namespace collage
