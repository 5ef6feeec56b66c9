// Kernels whose code serves all shapes of a function: it is compiled of a program over symbols,
// whose values it takes as numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/variant.h"
#include "base/result.h"
#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::native {

struct SymbolicVariant {
  std::string name;     ///< `symbolic`, or a product's, as `symbolic m6 n1`
  std::string weights;  ///< Variant::weights
};
/// Best guess first: one where rows are computed one by one, and for products one for each tile
/// that is worth it for their rows. None for functions that have no such kernel.
std::vector<SymbolicVariant> symbolic_variants(const Function& flat, int threads);

/// What the code of a kernel over symbols is compiled of.
struct OverSymbols {
  std::string key;                  ///< what the code follows from, whatever the symbols stand for
  tensor_program::Program program;  ///< scheduled, with the values of the function's shapes
};
/// Functions that differ in shapes alone have one key. Or why the variant has no such program.
Result<OverSymbols> program_over_symbols(const Function& flat, std::string_view variant,
                                         int threads);

}  // namespace collage::native
