// Products of rows, whose number is a symbol, with constant weights: the anchor of a program over
// symbols, with whatever element-wise computation behind it.
//
//   stage s0[i:n0, j:3072] = sum(k:768) p0[i, k] * c1[k, j];
//   result y0[i:n0, j:3072] = max(s0[i, j] + c2[j], 0.0f);
//
// The weights are packed in panels of 16 columns, as those of matmul_template.h, so that kernels
// of both share them. A tile of rows and panels is in registers; the last tile of rows is moved
// back to end where the rows do. A kernel with tiles of six rows hence serves six or more.
#pragma once

#include <string>
#include <vector>

#include "tensor_program/program.h"

namespace collage::native {

struct ProductTile {
  int rows = 1;
  int panels = 1;  ///< of 16 columns; divides the number of panels

  std::string to_string() const;
};

/// A program that is such a product, of one symbol.
struct RowProduct {
  std::string sum, weights;
  int64_t columns = 0, terms = 0;
  bool transposed = false;  ///< weights are read at [column, term]
};
/// Or why it is none. A program that is the sum alone gets a result that copies it.
Result<RowProduct> row_product(tensor_program::Program& program);

/// The tiles worth measuring for so many rows, best guess first; eight at most of all numbers of
/// rows together.
std::vector<ProductTile> product_tiles(const RowProduct& product, int64_t rows, bool avx512);

/// The program with packed weights, scheduled.
Result<tensor_program::Program> scheduled_product(tensor_program::Program program,
                                                  const RowProduct& product,
                                                  const ProductTile& tile, int threads);

}  // namespace collage::native
