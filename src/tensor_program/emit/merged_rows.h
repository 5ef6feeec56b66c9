// Fewer, longer dimensions: neighbouring outer axes of a program's stages that every array has side
// by side, or not at all, become one. The arrays are the same bytes.
//
//   stage m[b:12, q:77] = max(k:77) x[b, q, k];        stage m[b:924] = max(k:77) x[b, k];
//   result y[b:12, q:77, k:77] = x[b, q, k] - m[b, q];  result y[b:924, k:77] = x[b, k] - m[b];
//
// Which do follows from indices alone, whatever the extents. A loop over rows then takes no
// division to find its row.
#pragma once

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Of a program of one result, without schedule; the axes that all reductions keep, or all where
/// there is none.
Program merged_rows(Program program);

}  // namespace collage::tensor_program
