// Attention as one Halide pipeline: softmax(q · kᵀ * scale + mask) · v, for each batch and head.
//
// A task is a block of queries of one head. Queries are the lanes of the scores' vectors, so that
// softmax needs no horizontal operation; the block's scores (all keys) stay in L2. The second
// product has the columns of v in its lanes and broadcasts probabilities. Under a causal mask a
// task leaves out the keys that come after all of its queries: nearly half of the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/native/codegen/access.h"

namespace collage::native {

struct AttentionShape {
  std::vector<int64_t> batch;  ///< leading dimensions of the result, outermost first
  int64_t queries = 1, keys = 1, width = 1, value_width = 1;
  float scale = 1;
  bool causal = false;
};

struct AttentionSchedule {
  int queries = 32;  ///< of a task
  int key_tile = 12, query_tile = 6;
  int columns = 1;  ///< blocks of 16 value columns, or of all, that a query tile has

  std::string to_string() const;
};

AttentionSchedule attention_schedule(const AttentionShape& shape, bool avx512);

/// Queries that see equally many keys, as far as the template tells them apart: under a causal mask
/// a task's, otherwise all. Divides the number of queries.
int64_t attention_span(const AttentionShape& shape, const AttentionSchedule& schedule);

/// Accesses take (batch…, row, column); `mask` (batch…, query, key) may be empty. The result has
/// dimensions (value column, query of a span, span, batch… innermost first).
Halide::Func build_attention(const AttentionShape& shape, const AttentionSchedule& schedule,
                             const Access& q, const Access& k, const Access& v, const Access& mask);

}  // namespace collage::native
