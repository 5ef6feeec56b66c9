// Checks a JSON value against a JSON schema, as far as docs/report-schema.json uses that language:
// $ref into $defs, anyOf, type, const, pattern, minimum, items, required, properties,
// additionalProperties. What passes can be read without further questions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collage {

// The first place where `value` is not what `schema` says ("/kernels/3/cost_ms/median: is no
// number"); empty when there is none.
std::string schema_violation(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace collage
