#include "backend/memory/pieces.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/rearrange.h"
#include "runtime/plan.h"

namespace collage::memory {
namespace {

void append(Pieces& pieces, const std::vector<TensorType>& types) {
  int64_t at = 0;
  for (const TensorType& type : types) {
    const int64_t extent = type.shape[pieces.axis];
    pieces.pieces.push_back({at, extent});
    at += extent;
  }
}

size_t axis_of(const CallNode& call, const TensorType& type) {
  return static_cast<size_t>(
      normal_axis(call.attrs.integer("axis"), static_cast<int64_t>(type.shape.size())));
}

Status read_slice(const CallNode& call, Pieces& pieces) {
  const Shape& shape = pieces.whole.shape;
  bool cut = false;
  for (const SliceRange& range : TRY(slice_ranges(shape, call.attrs))) {
    const auto axis = static_cast<size_t>(range.axis);
    if (range.begin == 0 && range.count == shape[axis] && range.step == 1) continue;
    if (cut || (range.step != 1 && range.count != 1))
      return unsupported("memory: elements that lie apart");
    cut = true;
    pieces.axis = axis;
    pieces.pieces = {{range.begin, range.count}};
  }
  if (!cut) return unsupported("memory: a slice of the whole");
  return {};
}

}  // namespace

Result<Pieces> read_pieces(const CallNode& call) {
  const std::string name = call.op == nullptr ? "" : call.op->name;
  Pieces pieces;
  if (name == "concatenate") {
    pieces.whole = call.tensor_type();
    pieces.axis = axis_of(call, pieces.whole);
    append(pieces, call.args[0]->type().leaves());
  } else if (name == "split") {
    pieces.part = InPlace::Part::kOutput;
    pieces.whole = call.args[0]->tensor_type();
    pieces.axis = axis_of(call, pieces.whole);
    append(pieces, call.type().leaves());
  } else if (name == "strided_slice") {
    pieces.part = InPlace::Part::kOutput;
    pieces.whole = call.args[0]->tensor_type();
    TRY(read_slice(call, pieces));
  } else {
    return unsupported("memory: neither a join nor a cut");
  }
  if (std::any_of(pieces.pieces.begin(), pieces.pieces.end(),
                  [](const Piece& piece) { return piece.extent == 0; }) ||
      num_elements(pieces.whole.shape) == 0)
    return unsupported("memory: an empty tensor");
  return pieces;
}

Result<std::vector<Run>> runs_in(const Pieces& pieces, const Layout& layout) {
  const Shape& shape = pieces.whole.shape;
  const size_t rank = shape.size();
  if (!layout.fits(static_cast<int64_t>(rank)))
    return unsupported("memory: {} of rank {}", layout.to_string(), rank);
  int64_t block = 1;
  for (const Layout::Block& b : layout.blocks())
    if (b.dim == static_cast<int>(pieces.axis)) block *= b.size;
  const Shape physical = layout.physical_shape(shape);
  for (size_t d = 0; d < rank; ++d) {
    const int dim = layout.is_plain() ? static_cast<int>(d) : layout.order()[d];
    if (dim == static_cast<int>(pieces.axis)) break;
    if (physical[d] != 1) return unsupported("memory: elements that lie apart");
  }
  std::vector<Run> runs;
  for (const Piece& piece : pieces.pieces) {
    const bool last = piece.begin + piece.extent == shape[pieces.axis];
    if (piece.begin % block != 0 || (piece.extent % block != 0 && !last))
      return unsupported("memory: a cut through a block of channels");
    Shape index(rank, 0), part = shape;
    index[pieces.axis] = piece.begin;
    part[pieces.axis] = piece.extent;
    const size_t offset =
        static_cast<size_t>(layout.offset(shape, index)) * dtype_size(pieces.whole.dtype);
    if (offset % kArenaAlignment != 0)
      return unsupported("memory: a part that begins at byte {}", offset);
    runs.push_back({offset, layout.physical_bytes(part, pieces.whole.dtype)});
  }
  return runs;
}

}  // namespace collage::memory
