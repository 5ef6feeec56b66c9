// A function as one attention: result = softmax(scale · q · kᵀ + mask) · v for each head, where
// every matrix may be a part of a larger tensor as long as its columns lie side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace collage::amx {

/// The matrices of all heads inside one tensor.
struct Matrices {
  size_t param = 0;            ///< which of the function's parameters; of the result: 0
  std::vector<int64_t> heads;  ///< the element at which each begins
  int64_t row = 0;             ///< elements from row to row, perhaps none
};

struct Attention {
  int64_t queries = 1, keys = 1, width = 1, value_width = 1;
  float scale = 1;
  bool causal = false;
  Matrices q, k, v, out;
  std::optional<Matrices> mask;  ///< added to the scores: a row for each query
  Tensor constant_mask;          ///< empty where the mask is a parameter

  int64_t heads() const { return static_cast<int64_t>(q.heads.size()); }
};

/// Whether the call can be one, types considered.
Status check_attention(const CallNode& call);
/// Whether the call, a user of attention, only moves its rows about.
bool moves_rows(const CallNode& call);

/// Whether its operands can be read where they lie, given what its kernel gets.
bool reads_operands(const CallNode& call, const std::function<bool(const Expr&)>& is_source);

/// Why the function is none, if so. `function` is flat.
Result<Attention> read_attention(const Function& function);

}  // namespace collage::amx
