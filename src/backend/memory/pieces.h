// A join or a cut as consecutive pieces of a whole, and where the pieces lie in it.
#pragma once

#include <collage/tensor.h>

#include "ir/expr.h"
#include "runtime/kernel.h"
#include "runtime/layout.h"

namespace collage::memory {

struct Piece {
  int64_t begin = 0, extent = 0;  ///< along the axis
};

struct Pieces {
  InPlace::Part part = InPlace::Part::kInput;  ///< kInput: a join; kOutput: a cut
  TensorType whole;
  size_t axis = 0;
  std::vector<Piece> pieces;  ///< in the order of the call's fields or results
};

/// Of a call of concatenate, split or strided_slice; or why it has none.
Result<Pieces> read_pieces(const CallNode& call);

/// Bytes from the whole to a piece and bytes of the piece, where every piece is a run of bytes that
/// begins where a buffer may.
struct Run {
  size_t offset = 0, bytes = 0;
};
Result<std::vector<Run>> runs_in(const Pieces& pieces, const Layout& layout);

}  // namespace collage::memory
