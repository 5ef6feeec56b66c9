// How much care a measurement takes. Costs measured with less than asked are measured again.
#pragma once

#include <string_view>

#include "base/result.h"
#include "collage/collage.h"

namespace collage {

std::string_view effort_name(Effort effort);  // "fast", "default", "max"
Result<Effort> parse_effort(std::string_view name);
// Seconds that measuring may wait for moments without other load, beyond the time it takes itself
// (noise_gate.h).
double seconds_for_quiet(Effort effort);

}  // namespace collage
