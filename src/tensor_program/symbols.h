// Sets the values of symbols in programs (Program::symbols).
#pragma once

#include "tensor_program/extent.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

Symbols values_of(const Program& program);

/// Returns a number if the term is undefined or known.
Term extent_term(const Term& size, int64_t extent);

/// Returns the same program with other values of its symbols, and the extents that follow from
/// them; fails if an extent is invalid then. Text, schedule and terms stay the same except for the
/// values.
Result<Program> with_values(Program program, const Symbols& values);

/// Returns the program for its current values, all extents numbers.
Program without_symbols(Program program);

}  // namespace collage::tensor_program
