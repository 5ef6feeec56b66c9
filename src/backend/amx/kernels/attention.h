// Attention: result = softmax(scale · q · kᵀ + mask) · v for each head, where every matrix may be a
// part of a larger tensor as long as its columns lie side by side.
#pragma once

#include <collage/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace collage::amx {

/// The matrices of all heads inside one tensor.
struct Matrices {
  size_t param = 0;            ///< which of the kernel's inputs; of the result: 0
  std::vector<int64_t> heads;  ///< the element at which each begins
  int64_t row = 0;             ///< elements from row to row, perhaps none
};

struct Attention {
  int64_t queries = 1, keys = 1, width = 1, value_width = 1;
  float scale = 1;
  bool causal = false;
  Matrices q, k, v, out;
  std::optional<Matrices> mask;  ///< added to the scores: a row for each query
  Tensor constant_mask;          ///< empty where the mask is an input

  int64_t heads() const { return static_cast<int64_t>(q.heads.size()); }
};

}  // namespace collage::amx
