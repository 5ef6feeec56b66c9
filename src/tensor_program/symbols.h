// Programs over symbols (Program::symbols) for given values of them.
#pragma once

#include "tensor_program/extent.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

Symbols values_of(const Program& program);

/// A number where the term is undefined or known.
Term extent_term(const Term& size, int64_t extent);

/// The same program with other values of its symbols, and the extents that follow from them;
/// refused where an extent is none then. What stands there is the program's alone: text, schedule
/// and terms are the same but for the values.
Result<Program> with_values(Program program, const Symbols& values);

/// The program of its values alone, all extents numbers.
Program without_symbols(Program program);

}  // namespace collage::tensor_program
