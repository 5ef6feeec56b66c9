// emit: the tensor program of a function of operators, fused across operators.
//
//   fn (%x: Tensor[(4, 8), float32]) { nn.relu(nn.dense(%x, meta[…])) }
//
//   program {
//     param p0: float32[4, 8];
//     const c1: float32[3, 8];
//     stage s0[d0:4, d1:3] = sum(r0:8) p0[d0, r0] * c1[d1, r0];
//     result y0[i0:4, i1:3] = max(s0[i0, i1], 0.0f);
//   }
//
// What is element-wise, broadcasts or moves elements becomes a part of what reads it (a prologue),
// or of the result behind a sum (an epilogue); sums and statistics become stages of their own. No
// schedule is chosen. Parameters are named p0, p1 … after their positions, where they are read.
#pragma once

#include <vector>

#include "ir/expr.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// The form in which operators of several stages are emitted.
struct EmitForm {
  bool row_stages = false;        ///< softmax keeps its exponentials
  bool whole_reductions = false;  ///< a reduction is one loop, whatever its extent
  /// True if what joins tensors (a result that does so, rows with their pads) has an update for
  /// each of them, over its part of the whole: no element chooses among them.
  bool joins_by_parts = false;
  /// Layouts of the parameters and, last, of the result; empty: plain. If the result has its
  /// channels last, sums of its rank are walked in that order too.
  std::vector<ChannelLayout> layouts = {};
};

/// Returns the program, or why some call has none. Looks into composites and primitives. One result
/// a leaf of the function's result.
Result<Program> emit(const Function& function, EmitForm form = {});

}  // namespace collage::tensor_program
