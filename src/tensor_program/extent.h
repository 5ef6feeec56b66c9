// Extents over symbols: an array's dimensions before its operator is called.
//
//   param X: float32[n, 2 * d];    [4, 6] decides n = 4 and d = 3
//
// An extent is a term over the symbols as variables: sums, differences, products, quotients rounded
// down, remainders, min(a, b) and max(a, b).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor_program/program_tokens.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// The values of symbols.
using Symbols = std::map<std::string, int64_t>;

/// Parses the extent that is read next.
Result<Term> parse_extent(TokenReader& tokens);

/// Returns the names without a value, each once; none for an undefined extent.
std::vector<std::string> unknown_symbols(const Term& extent, const Symbols& known);
/// Returns none if a symbol has no value, or an intermediate number does not fit 32 bits.
std::optional<int64_t> value_of(const Term& extent, const Symbols& symbols);

/// Returns the value of the one unknown symbol for which the extent is `value`; none if the extent
/// is not linear in it, or no integer gives that value.
std::optional<int64_t> solve(const Term& extent, const std::string& symbol, const Symbols& known,
                             int64_t value);

}  // namespace collage::tensor_program
