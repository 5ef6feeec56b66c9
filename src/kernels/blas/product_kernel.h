// The kernel of a product, result = alpha * A · B + addend: one CBLAS call a matrix of the batch.
#pragma once

#include <collage/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace collage::blas {

/// Parameter `param` of the function, or a constant.
struct Operand {
  int param = -1;
  Tensor constant;
  Shape shape;
  bool is_constant() const { return param < 0; }
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

struct Method {
  bool repacked = false;      ///< the constant right matrices are stored the other way round
  bool vector = false;        ///< one row: sgemv
  bool side_by_side = false;  ///< a thread a product of the batch, instead of all for each

  std::string to_string() const;
};

/// The methods that apply, best guess first.
std::vector<Method> methods(const Product& product, int threads);

Result<std::unique_ptr<Kernel>> make_product_kernel(Product product, const Method& method);

}  // namespace collage::blas
