// Checks a JSON value against a JSON schema, as far as docs/report-schema.json uses that language:
// $ref into $defs, anyOf, type, const, pattern, minimum, items, required, properties,
// additionalProperties. A value that passes can be read without further checks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collage {

// Returns the first place where `value` does not meet `schema` ("/kernels/3/cost_ms/median: is no
// number"); empty if there is none.
std::string schema_violation(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace collage
