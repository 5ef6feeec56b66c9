// Changes to JSON, value by value, so that what comes out is JSON and mostly of the form it had.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/random.h"

namespace collage::fuzz {

// A few values are other ones, of the same type or not, or go, or come twice, or swap places; keys
// change, too. Strings change as text does.
nlohmann::json with_other_values(nlohmann::json value, Random& random);
// The same as text; one in sixteen with other bytes besides.
std::string changed_json(const nlohmann::json& value, Random& random);

}  // namespace collage::fuzz
