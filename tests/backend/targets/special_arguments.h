// How what is promised of operators at special arguments (ops/special_values.h) is tested.
#pragma once

#include <vector>

#include "ops/special_values.h"

namespace collage {

// Whether the promise allows that value. Where only the size makes the exact one uncertain, a value
// within `relative` of the largest number may be infinite, and the other way round.
bool allows(const Promise& promise, double value, double got, bool may_lose_nan);

// The arguments at which the promise is tested, each with its neighbours.
std::vector<float> special_arguments(const Promise& promise);
// The arguments from which pairs are made.
std::vector<float> special_pair_arguments(const Promise& promise);

}  // namespace collage
