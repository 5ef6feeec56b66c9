#include "backend/contraction/kernels/contraction.h"

#include "base/integers.h"

namespace collage::contraction {

std::vector<Image> Contraction::all_images() const {
  Image first{data, *this};
  if (!addend) return {first};
  first.extents.in_channels -= addend->extents.in_channels;
  return {first, *addend};
}

Spatial Extents::pass_extent() const {
  Spatial extent;
  for (size_t d = 0; d < 3; ++d) extent[d] = ceil_div(out[d], taps.up[d]);
  return extent;
}

}  // namespace collage::contraction
