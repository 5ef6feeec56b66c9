// Functions of the library that tensor programs may call as a stage (tensor_program/external.h):
//
//   cblas_sgemm     C[m, n] = A[m, k] · B[k, n]
//   cblas_sgemm_nt  C[m, n] = A[m, k] · B[n, k]ᵀ
//
// Both take a third input, [n] or [m, n], that is added: a product and its bias are one call.
#pragma once

namespace collage::blas {

void register_labels();

}  // namespace collage::blas
