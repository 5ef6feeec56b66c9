// Generalises a program of one shape to one over symbols that computes the same for that shape, and
// is the same program whatever the shape was.
//
//   program {                                        program (n0 = 211) {
//     param p0: float32[7, 64];                        param p0: float32[n0, 64];
//     const c1: float32[64];                           const c1: float32[64];
//     result y[i:7, j:64] = p0[i, j] + c1[j];          result y[i:n0, j:64] = p0[i, j] + c1[j];
//   }                                                }
//
// Extents that an index ties to each other become one symbol. Extents stay constants if a constant
// array has them, or if an index is not the plain axis: there the shape is a part of the
// computation. A factor 1 / n of a sum over n elements follows n.
#pragma once

#include "tensor_program/symbols.h"

namespace collage::tensor_program {

struct Generalised {
  Program program;  ///< its symbols have values that depend on nothing
  Symbols values;   ///< those of the shape that it was made from
};

/// kUnsupported: no extent may vary. The schedule is dropped.
Result<Generalised> generalise(const Program& program);

}  // namespace collage::tensor_program
