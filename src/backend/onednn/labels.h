// Primitives that tensor programs may call as a stage (tensor_program/external.h):
//
//   onednn.matmul  C[m, n] = A[m, k] · B[k, n], or a batch of such products; a third input, [n] or
//                  of C's shape, is added
#pragma once

namespace collage::onednn {

void register_labels();

}  // namespace collage::onednn
