// The kernel of a product, result = alpha * A · B + addend: one CBLAS call a matrix of the batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/gemm/kernels/product.h"
#include "runtime/kernel.h"

namespace collage::blas {

using gemm::Operand;
using gemm::Product;

struct Method {
  bool repacked = false;      ///< the constant right matrices are stored the other way round
  bool vector = false;        ///< one row: sgemv
  bool side_by_side = false;  ///< a thread a product of the batch, instead of all for each

  std::string to_string() const;
};

/// Returns the methods that apply, best guess first.
std::vector<Method> methods(const Product& product, int threads);

Result<std::unique_ptr<Kernel>> make_product_kernel(Product product, const Method& method);

}  // namespace collage::blas
