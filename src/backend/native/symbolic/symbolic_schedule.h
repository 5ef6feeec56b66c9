// The schedule of a program over symbols (tensor_program/generalise.h): a task computes some rows
// of the result, and for each row all stages that it needs.
//
//   rows         the result's outer axes, as many as all reductions keep
//   tasks        as many rows each as threads want: a split by an expression over symbols, one task
//                alone where there is little to do
//   innermost    vectors, whatever the extent: the last one of a result ends where the row does,
//                or is masked where the row is shorter than a vector
//
// It depends on no value of a symbol.
#pragma once

#include "tensor_program/program.h"

namespace collage::native {

/// kUnsupported, and why, for programs that have no such rows, or whose rows no vectors read.
Result<tensor_program::Program> scheduled_over_symbols(tensor_program::Program program,
                                                       int threads);

}  // namespace collage::native
