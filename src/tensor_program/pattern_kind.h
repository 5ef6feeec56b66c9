// How a program may be fused with what stands around it, found from its body: the fusion kind
// (ir/op.h) that an operator of the same computation would declare.
//
//   result C[i:4, j:8] = A[i, j] * 2.0f                        element-wise
//   result C[i:4, j:8] = A[i, j] + B[j]                        broadcast
//   result C[i:4, j:8] = A[j, i]                               injective
//   result C[i:4] = max(k:8) A[i, k]                           reduction
//   result C[i:4, j:8] = sum(k:16) A[i, k] * B[k, j]           anchor: a product
//   result C[i:4, j:8] = A[i, j] + A[i, (j + 1) % 8]           anchor: a window
//   stage M[i:4] = max(k:8) A[i, k]; result C[…] = A[i, j] - M[i]     anchor: a normalisation
//   an external function, or updates at indices of their own          opaque
#pragma once

#include "ir/op.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// The highest kind of any of its stages. The program is verified. Of an element-wise or broadcast
/// program every index, of constants too, is an axis or zero.
FusionKind pattern_kind(const Program& program);

/// Returns whether these are the stage's axes in order.
bool are_own_indices(const Stage& stage, const std::vector<Term>& at);
/// Returns whether each element of the stage is written at its own indices alone.
bool writes_own_elements(const Stage& stage, const Update& update);

}  // namespace collage::tensor_program
