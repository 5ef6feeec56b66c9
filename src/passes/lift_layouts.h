// Takes computations out of called tensor programs that need not run where they are called:
//
//  - stages of constants alone, such as a weight stored in another layout, become calls of their
//    own, which fold_constants computes. Not if they would be more than twice as large as the
//    constants (a weight that is unpacked from bytes is kept as bytes), nor if computing them
//    takes more than a few steps an element;
//  - a layout (tensor_program/layout.h) of a layout becomes one, and inverse pairs are removed:
// calls
//    of programs that only move elements, transposes and reshapes next to them, stages of the
//    program that reads them, and the last stage of the program that makes what they read;
//  - a layout that several programs store of one tensor becomes one call, which they share.
//
//   %0 = tensor_program(%x, meta[…], "program { param A: …; param B: …;
//          stage P[j1:4, k:64, j0:16] = B[k, j1 * 16 + j0]; result C[i:8, j:64] = sum(k:64) … }")
//   becomes
//   %0 = tensor_program(meta[…], "program { param x: …; result y[…] = x[i1, i0 * 16 + i2]; }");
//   %1 = tensor_program(%x, %0, "program { param A: …; param P: …; result C[i:8, j:64] = … }")
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> lift_layouts(const Function& function);

// A lifted stage of constants may have at most this many bytes for each byte of the constants.
inline constexpr size_t kMostGrowthOfLayouts = 2;

}  // namespace collage
