// Collage's layouts as oneDNN memory descriptors, and back.
//
// Different layouts may put a given shape in memory the same way: (1, 64, 1, 1) is the same bytes
// plain, channels last and in blocks of 16. `canonical` names such a tensor plain, so that no
// conversion stands between a global pooling and the product after it.
#pragma once

#include <optional>
#include <vector>

#include "backend/onednn/kernels/library.h"
#include "runtime/encoding.h"

namespace collage::onednn {

// Returns whether oneDNN can express this layout at that rank.
bool expressible(const Layout& layout, int64_t rank);
// Returns the descriptor of a tensor; the layout must be expressible.
Desc desc_of(const Shape& shape, const Layout& layout, Type type = kFloat);
// Returns the descriptor of a plain tensor. Scalars become one element of rank 1.
Desc plain_desc(const Shape& shape, Type type = kFloat);
// Returns the layout of a descriptor, or none if Layout cannot express it.
std::optional<Layout> layout_of(const Desc& desc, const Shape& shape);
// Returns plain if the layout stores this shape as plain does; else the layout.
Layout canonical(const Layout& layout, const Shape& shape);
// Returns whether two layouts store this shape in the same way.
bool same_memory(const Layout& a, const Layout& b, const Shape& shape);

Encoding encoding_of(const Layout& layout, Type type);
// Accepts float32, bfloat16 and integers of 8 bits.
Result<Type> type_of(DType dtype);

// Returns the layouts that image-like tensors (rank 3 to 5, channels second) are computed in:
// plain, channels last, and channels in blocks of this processor's vector. In bfloat16 only
// channels last, from which the tiles of a product are read.
std::vector<Layout> image_layouts(int64_t rank, bool lowered = false);
int64_t vector_block();  // 16 with AVX-512, else 8

}  // namespace collage::onednn
