// Which stages of a program are computed, and where: before a schedule says how.
//
// Stages that cost less to compute where they are read than to keep are gone. Sums are computed in
// tiles that stay in registers, inside the tiles of a stage of the same shape that reads them once,
// their consumer: the element-wise stage behind a product is its epilogue.
//
//   stage S[i, j] = sum(k) A[i, k] * B[k, j];         S in tiles of Y
//   result Y[i, j] = max(S[i, j] + c[j], 0.0f);
//
// Sums that nobody reads like that get a consumer that copies them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor_program/intrinsic.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

struct TiledSum {
  std::string sum, consumer;
  /// The axis of both whose points share the columns' factors, if any: the rows of a tile. Its
  /// columns are along the innermost axis.
  std::optional<size_t> rows;
  /// What computes it, if it was made one of these (dot_products.h); the last axis that it is over
  /// are the terms of one instruction.
  const Intrinsic* intrinsic = nullptr;
};

struct StagePlan {
  Program program;
  std::vector<TiledSum> sums;
  /// Stages that are computed for each point of the one stage that reads them, by name: partial
  /// sums.
  std::vector<std::pair<std::string, std::string>> parts;

  bool is_sum(std::string_view stage) const;
  bool reads_parts(const Stage& stage) const;
  std::vector<const TiledSum*> sums_of(std::string_view consumer) const;
};

/// What storing an element and loading it costs, in additions.
inline constexpr int64_t kKeeping = 8;

/// Of a program without schedule and external functions. A stage is kept where that saves more than
/// `keeping` an element.
StagePlan plan_stages(Program program, int64_t keeping = kKeeping);

/// A stage that is a sum as one of another name and a consumer that copies it.
std::pair<Stage, Stage> with_consumer(const Stage& stage);

/// Has the sum read what its columns multiply from copies in panels of `width` columns, one after
/// the other in memory: where it would be read across rows, or `all`. Extents divide by the width.
/// Whether there was anything to pack.
bool pack_columns(StagePlan& plan, const TiledSum& sum, int64_t width, bool all);

}  // namespace collage::tensor_program
