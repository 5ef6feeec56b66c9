// Terms over symbols as text, and values of symbols for messages.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor_program/extent.h"

namespace collage::tensor_program {

/// Distances between instances of a text that are looked at (fitted_extent.h). Long ones have many
/// divisors; short ones serve texts that large sizes do not fit.
inline constexpr int64_t kExtentSteps[] = {3360, 96, 32, 12, 2, 1};

/// The most that terms are divided by; the second where there are others than the first finds.
inline constexpr int64_t kExtentDivisors[] = {4, 32};

/// Script has them in quotes where it is Python that reads it, and // for the division.
Result<Term> parse_symbol_term(std::string_view text);

/// "m = 4, n = 16"
std::string values_text(const Symbols& values);

}  // namespace collage::tensor_program
