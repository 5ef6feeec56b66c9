#include "backend/onednn/layouts.h"

#include <algorithm>

#include "base/check.h"

namespace collage::onednn {

namespace {

constexpr std::pair<DType, Type> kTypes[] = {{DType::kFloat32, kFloat},
                                             {DType::kBFloat16, kBrainFloat},
                                             {DType::kInt8, kSignedByte},
                                             {DType::kUInt8, kUnsignedByte}};

struct BlockedTag {
  int64_t rank;
  int64_t block;
  Tag tag;
};
constexpr BlockedTag kBlockedTags[] = {
    {3, 4, Tag::aBc4b},   {3, 8, Tag::aBc8b},   {3, 16, Tag::aBc16b},
    {4, 4, Tag::aBcd4b},  {4, 8, Tag::aBcd8b},  {4, 16, Tag::aBcd16b},
    {5, 4, Tag::aBcde4b}, {5, 8, Tag::aBcde8b}, {5, 16, Tag::aBcde16b},
};

std::optional<Tag> blocked_tag(const Layout& layout, int64_t rank) {
  for (const BlockedTag& entry : kBlockedTags)
    if (entry.rank == rank && layout == Layout::channels_blocked(rank, entry.block))
      return entry.tag;
  return std::nullopt;
}

// A logical index digit by digit: which part of which dimension moves how far in memory. Two
// layouts of a shape are the same memory when these lists are equal.
struct Digit {
  int dim;
  int64_t unit;    // how much of the logical index one step of the digit is
  int64_t extent;  // how many steps
  int64_t stride;  // elements in memory a step
  bool operator==(const Digit&) const = default;
};

std::vector<Digit> digits(const Layout& layout, const Shape& shape) {
  std::vector<int> order = layout.order();
  if (layout.is_plain())
    for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int>(d));
  Shape physical = layout.physical_shape(shape);
  Shape strides(physical.size(), 1);
  for (size_t i = physical.size(); i-- > 1;) strides[i - 1] = strides[i] * physical[i];

  std::vector<Digit> list;
  Shape unit(shape.size(), 1);
  for (size_t i = layout.blocks().size(); i-- > 0;) {  // innermost block first
    const Layout::Block& block = layout.blocks()[i];
    auto dim = static_cast<size_t>(block.dim);
    list.push_back({block.dim, unit[dim], block.size, strides[order.size() + i]});
    unit[dim] *= block.size;
  }
  for (size_t i = 0; i < order.size(); ++i) {
    auto dim = static_cast<size_t>(order[i]);
    list.push_back({order[i], unit[dim], physical[i], strides[i]});
  }
  std::erase_if(list, [](const Digit& d) { return d.extent == 1; });
  std::sort(list.begin(), list.end(), [](const Digit& a, const Digit& b) {
    return std::tie(a.dim, a.unit) < std::tie(b.dim, b.unit);
  });
  std::vector<Digit> merged;
  for (const Digit& d : list) {
    if (!merged.empty() && merged.back().dim == d.dim &&
        merged.back().stride * merged.back().extent == d.stride)
      merged.back().extent *= d.extent;
    else
      merged.push_back(d);
  }
  return merged;
}

}  // namespace

bool expressible(const Layout& layout, int64_t rank) {
  if (layout.is_plain()) return rank <= DNNL_MAX_NDIMS;
  if (!layout.fits(rank)) return false;
  return layout.blocks().empty() || blocked_tag(layout, rank).has_value();
}

Desc plain_desc(const Shape& shape, Type type) {
  if (shape.empty()) return Desc({1}, type, Tag::a);
  Dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return Desc(shape, type, strides);
}

Desc desc_of(const Shape& shape, const Layout& layout, Type type) {
  if (layout.is_plain()) return plain_desc(shape, type);
  COLLAGE_CHECK(layout.fits(static_cast<int64_t>(shape.size())), "{} on {}", layout.to_string(),
                shape_to_string(shape));
  if (auto tag = blocked_tag(layout, static_cast<int64_t>(shape.size())))
    return Desc(shape, type, *tag);
  COLLAGE_CHECK(layout.blocks().empty(), "layout {}", layout.to_string());
  Dims strides(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = layout.order().size(); i-- > 0;) {
    auto dim = static_cast<size_t>(layout.order()[i]);
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return Desc(shape, type, strides);
}

bool same_memory(const Layout& a, const Layout& b, const Shape& shape) {
  if (a == b) return true;
  if (a.physical_bytes(shape, DType::kFloat32) != b.physical_bytes(shape, DType::kFloat32))
    return false;
  return digits(a, shape) == digits(b, shape);
}

Layout canonical(const Layout& layout, const Shape& shape) {
  return same_memory(layout, Layout(), shape) ? Layout() : layout;
}

std::optional<Layout> layout_of(const Desc& desc, const Shape& shape) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked ||
      desc.get_submemory_offset() != 0)
    return std::nullopt;
  auto rank = static_cast<int64_t>(shape.size());
  std::vector<Layout> known = {Layout(), Layout::channels_last(rank)};
  if (rank >= 3 && rank <= 5)
    for (int64_t block : {16, 8, 4}) known.push_back(Layout::channels_blocked(rank, block));
  for (const Layout& layout : known) {
    Desc candidate = desc_of(shape, layout);
    if (candidate.get_inner_blks() != desc.get_inner_blks() ||
        candidate.get_inner_idxs() != desc.get_inner_idxs() ||
        candidate.get_padded_dims() != desc.get_padded_dims())
      continue;
    bool equal = true;
    Dims a = candidate.get_strides(), b = desc.get_strides(), padded = desc.get_padded_dims();
    Dims steps = padded;  // how many outer steps each dimension has
    for (size_t i = 0; i < desc.get_inner_idxs().size(); ++i)
      steps[static_cast<size_t>(desc.get_inner_idxs()[i])] /= desc.get_inner_blks()[i];
    for (size_t d = 0; d < steps.size(); ++d) equal &= steps[d] == 1 || a[d] == b[d];
    if (equal) return canonical(layout, shape);
  }
  return std::nullopt;
}

Encoding encoding_of(const Layout& layout, Type type) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const auto& entry) { return entry.second == type; });
  COLLAGE_CHECK(found != std::end(kTypes), "oneDNN's type {}", static_cast<int>(type));
  return Encoding{found->first, layout, VirtualDevice{}};
}

Result<Type> type_of(DType dtype) {
  for (const auto& [own, type] : kTypes)
    if (own == dtype) return type;
  return unsupported("onednn: element type {}", dtype_name(dtype));
}

int64_t vector_block() {
  static const int64_t block = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? 16 : 8;
  return block;
}

std::vector<Layout> image_layouts(int64_t rank, bool lowered) {
  if (lowered && rank >= 3 && rank <= 5) return {Layout::channels_last(rank)};
  std::vector<Layout> layouts = {Layout()};
  if (rank >= 3 && rank <= 5) {
    layouts.push_back(Layout::channels_last(rank));
    layouts.push_back(Layout::channels_blocked(rank, vector_block()));
  }
  return layouts;
}

}  // namespace collage::onednn
