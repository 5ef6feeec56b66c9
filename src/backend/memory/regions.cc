#include "backend/memory/regions.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/rearrange.h"
#include "runtime/plan.h"

namespace collage::memory {
namespace {

void append(Regions& regions, const std::vector<TensorType>& types) {
  int64_t at = 0;
  for (const TensorType& type : types) {
    const int64_t extent = type.shape[regions.axis];
    regions.regions.push_back({at, extent});
    at += extent;
  }
}

size_t axis_of(const CallNode& call, const TensorType& type) {
  return static_cast<size_t>(
      normal_axis(call.attrs.integer("axis"), static_cast<int64_t>(type.shape.size())));
}

Status read_slice(const CallNode& call, Regions& regions) {
  const Shape& shape = regions.whole.shape;
  bool cut = false;
  for (const SliceRange& range : TRY(slice_ranges(shape, call.attrs))) {
    const auto axis = static_cast<size_t>(range.axis);
    if (range.begin == 0 && range.count == shape[axis] && range.step == 1) continue;
    if (cut || (range.step != 1 && range.count != 1))
      return unsupported("memory: elements that lie apart");
    cut = true;
    regions.axis = axis;
    regions.regions = {{range.begin, range.count}};
  }
  if (!cut) return unsupported("memory: a slice of the whole");
  return {};
}

}  // namespace

Result<Regions> read_regions(const CallNode& call) {
  const std::string name = call.op == nullptr ? "" : call.op->name;
  Regions regions;
  if (name == "concatenate") {
    regions.whole = call.tensor_type();
    regions.axis = axis_of(call, regions.whole);
    append(regions, call.args[0]->type().leaves());
  } else if (name == "split") {
    regions.part = InPlace::Part::kOutput;
    regions.whole = call.args[0]->tensor_type();
    regions.axis = axis_of(call, regions.whole);
    append(regions, call.type().leaves());
  } else if (name == "strided_slice") {
    regions.part = InPlace::Part::kOutput;
    regions.whole = call.args[0]->tensor_type();
    TRY(read_slice(call, regions));
  } else {
    return unsupported("memory: neither a join nor a cut");
  }
  if (std::any_of(regions.regions.begin(), regions.regions.end(),
                  [](const Region& region) { return region.extent == 0; }) ||
      num_elements(regions.whole.shape) == 0)
    return unsupported("memory: an empty tensor");
  return regions;
}

Result<std::vector<Run>> runs_in(const Regions& regions, const Layout& layout) {
  const Shape& shape = regions.whole.shape;
  const size_t rank = shape.size();
  if (!layout.fits(static_cast<int64_t>(rank)))
    return unsupported("memory: {} of rank {}", layout.to_string(), rank);
  int64_t block = 1;
  for (const Layout::Block& b : layout.blocks())
    if (b.dim == static_cast<int>(regions.axis)) block *= b.size;
  const Shape physical = layout.physical_shape(shape);
  for (size_t d = 0; d < rank; ++d) {
    const int dim = layout.is_plain() ? static_cast<int>(d) : layout.order()[d];
    if (dim == static_cast<int>(regions.axis)) break;
    if (physical[d] != 1) return unsupported("memory: elements that lie apart");
  }
  std::vector<Run> runs;
  for (const Region& region : regions.regions) {
    const bool last = region.begin + region.extent == shape[regions.axis];
    if (region.begin % block != 0 || (region.extent % block != 0 && !last))
      return unsupported("memory: a cut through a block of channels");
    Shape index(rank, 0), part = shape;
    index[regions.axis] = region.begin;
    part[regions.axis] = region.extent;
    const size_t offset =
        static_cast<size_t>(layout.offset(shape, index)) * dtype_size(regions.whole.dtype);
    if (offset % kArenaAlignment != 0)
      return unsupported("memory: a part that begins at byte {}", offset);
    runs.push_back({offset, layout.physical_bytes(part, regions.whole.dtype)});
  }
  return runs;
}

}  // namespace collage::memory
