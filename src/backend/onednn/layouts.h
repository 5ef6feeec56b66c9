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

// Whether oneDNN can be told of this layout at that rank.
bool expressible(const Layout& layout, int64_t rank);
// The descriptor of a tensor; the layout must be expressible.
Desc desc_of(const Shape& shape, const Layout& layout, Type type = kFloat);
// The descriptor of a plain tensor. Scalars become one element of rank 1.
Desc plain_desc(const Shape& shape, Type type = kFloat);
// The layout that a descriptor is, or nothing when Layout has no word for it.
std::optional<Layout> layout_of(const Desc& desc, const Shape& shape);
// Plain when the layout puts this shape in memory as plain does; else the layout.
Layout canonical(const Layout& layout, const Shape& shape);
// Whether two layouts put this shape in memory the same way.
bool same_memory(const Layout& a, const Layout& b, const Shape& shape);

Encoding encoding_of(const Layout& layout, Type type);
// Float32, bfloat16 or an integer of 8 bits.
Result<Type> type_of(DType dtype);

// Layouts that image-like tensors (rank 3 to 5, channels second) are computed in: plain, channels
// last, and channels in blocks of this processor's vector. In bfloat16 only channels last, which
// is what the tiles of a product are read from.
std::vector<Layout> image_layouts(int64_t rank, bool lowered = false);
int64_t vector_block();  // 16 with AVX-512, else 8

}  // namespace collage::onednn
