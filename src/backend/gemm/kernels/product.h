// A product of matrices, result = alpha * A · B + addend, with any batch dimensions: the
// description from which kernels of linear algebra libraries are made and saved.
#pragma once

#include <collage/tensor.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/json_fields.h"
#include "runtime/saved_kernel.h"

namespace collage::gemm {

/// Parameter `param` of the function, or a constant.
struct Operand {
  int param = -1;
  Tensor constant;
  Shape shape;
  bool is_constant() const { return param < 0; }
  size_t bytes() const { return static_cast<size_t>(num_elements(shape)) * sizeof(float); }
};

struct Product {
  Operand a, b;
  std::optional<Operand> addend;
  float alpha = 1;
  Shape result;
  int m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;  ///< as the matrices stand in memory
  /// Offsets of the matrices of each product of the batch, in elements.
  std::vector<int64_t> a_offsets, b_offsets;

  size_t batch() const { return a_offsets.size(); }
};

/// Returns strides of the addend along the dimensions of the result, in elements.
std::vector<int64_t> addend_strides(const Product& product);

/// Constants of A, B and the addend; null: it is a parameter, or there is none.
using OperandData = std::array<std::shared_ptr<const void>, 3>;

/// Copies the constants for a kernel, on huge pages and shared with others
/// (runtime/shared_constants.h). `repacked`: transposes the matrices of B, a constant, and flips
/// `transpose_b`.
Result<OperandData> kept_constants(Product& product, bool repacked);
/// Returns the bytes of all constants.
size_t constant_bytes(const Product& product);

/// Returns its fields as JSON; appends the constants to the kernel's.
nlohmann::json saved_product(const Product& product, const OperandData& constants,
                             SavedKernel& saved);

struct LoadedProduct {
  Product product;
  OperandData constants;
};
/// kBadModel unless all matrices lie within the saved kernel's buffers, on that device, and within
/// its constants.
Result<LoadedProduct> loaded_product(const JsonFields& fields, const SavedKernel& saved,
                                     const VirtualDevice& device = {});

}  // namespace collage::gemm
