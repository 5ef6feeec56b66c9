// JSON from untrusted sources: files, database rows, lines of another process. Functions on JSON
// values (copying, printing, comparing) are recursive, so nesting is limited before values exist.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace collage {

// Returns null if the text is malformed or nests too deep.
nlohmann::json parse_json(std::string_view text);

inline constexpr int kMaxJsonDepth = 128;  // of lists and objects inside one another
bool nests_too_deep(std::string_view json);

}  // namespace collage
