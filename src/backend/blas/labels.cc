#include "backend/blas/labels.h"

#include <cstring>
#include <limits>

#include "backend/blas/kernels/openblas.h"
#include "backend/blas/kernels/team_turn.h"
#include "tensor_program/external.h"

namespace collage::blas {
namespace {

using tensor_program::register_external;

Result<TensorType> product_type(std::span<const TensorType> inputs, bool transposed) {
  if (inputs.size() != 2 && inputs.size() != 3)
    return unsupported("cblas_sgemm of {} arrays", inputs.size());
  for (const TensorType& input : inputs) {
    if (input.dtype != DType::kFloat32)
      return unsupported("cblas_sgemm of {}", dtype_name(input.dtype));
    for (int64_t d : input.shape)
      if (d < 1 || d > std::numeric_limits<int>::max())
        return unsupported("cblas_sgemm of an array of shape {}", shape_to_string(input.shape));
  }
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  if (a.size() != 2 || b.size() != 2 || a[1] != b[transposed ? 1 : 0])
    return unsupported("cblas_sgemm of shapes {} and {}", shape_to_string(a), shape_to_string(b));
  const Shape result{a[0], b[transposed ? 0 : 1]};
  if (inputs.size() == 3 && inputs[2].shape != result && inputs[2].shape != Shape{result[1]})
    return unsupported("cblas_sgemm adds no array of shape {}", shape_to_string(inputs[2].shape));
  return TensorType{result, DType::kFloat32};
}

Status product(std::span<const DLTensor> inputs, const DLTensor& destination, bool transposed) {
  const auto data = [](const DLTensor& tensor) { return static_cast<float*>(tensor.data); };
  float* c = data(destination);
  const auto m = static_cast<int>(destination.shape[0]), n = static_cast<int>(destination.shape[1]),
             k = static_cast<int>(inputs[0].shape[1]);
  if (inputs.size() == 3) {
    const float* added = data(inputs[2]);
    const size_t row = static_cast<size_t>(n);
    for (size_t i = 0; i < static_cast<size_t>(m); ++i)
      std::memcpy(c + i * row, inputs[2].ndim == 2 ? added + i * row : added, row * sizeof(float));
  }
  const OpenBlas& library = *TRY(openblas());
  const auto turn = turn_at_team();
  library.sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, m, n, k, 1.0f,
                data(inputs[0]), k, data(inputs[1]), transposed ? k : n,
                inputs.size() == 3 ? 1.0f : 0.0f, c, n);
  return {};
}

}  // namespace

void register_labels() {
  for (bool transposed : {false, true})
    register_external(
        transposed ? "cblas_sgemm_nt" : "cblas_sgemm",
        [=](auto inputs) { return product_type(inputs, transposed); },
        [=](auto inputs, const DLTensor& destination) {
          return product(inputs, destination, transposed);
        });
}

}  // namespace collage::blas
