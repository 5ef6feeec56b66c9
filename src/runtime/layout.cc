#include "runtime/layout.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"

namespace collage {

Result<Layout> Layout::parse(std::string_view tag) {
  Layout layout;
  if (tag.empty() || tag == "plain") return layout;
  std::vector<bool> upper;
  constexpr int64_t kMaxPadding = 1 << 20;  // elements of all blocks
  int64_t padding = 1;
  size_t i = 0;
  for (; i < tag.size() && std::isalpha(static_cast<unsigned char>(tag[i])); ++i) {
    int dim = std::tolower(tag[i]) - 'a';
    layout.order_.push_back(dim);
    if (static_cast<size_t>(dim) >= upper.size()) upper.resize(static_cast<size_t>(dim) + 1);
    upper[static_cast<size_t>(dim)] = std::isupper(static_cast<unsigned char>(tag[i])) != 0;
  }
  while (i < tag.size()) {
    int64_t size = 0;
    for (;
         i < tag.size() && std::isdigit(static_cast<unsigned char>(tag[i])) && size <= kMaxPadding;
         ++i)
      size = size * 10 + (tag[i] - '0');
    if (size < 1 || i >= tag.size() || !std::islower(static_cast<unsigned char>(tag[i])))
      return usage_error("layout '{}': expected a block such as 16b at column {}", tag, i + 1);
    layout.blocks_.push_back({tag[i++] - 'a', size});
    padding *= size;
    if (layout.blocks_.back().dim >= static_cast<int>(upper.size()) || padding > kMaxPadding)
      return usage_error("layout '{}': a block of no dimension, or too large", tag);
  }
  std::vector<int> sorted = layout.order_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); ++d)
    if (sorted[d] != static_cast<int>(d))
      return usage_error("layout '{}': every dimension must appear once", tag);
  for (size_t d = 0; d < upper.size(); ++d) {
    bool blocked = std::any_of(layout.blocks_.begin(), layout.blocks_.end(),
                               [&](const Block& b) { return b.dim == static_cast<int>(d); });
    if (blocked != upper[d])
      return usage_error("layout '{}': upper case marks exactly the blocked dimensions", tag);
  }
  if (layout.blocks_.empty() && std::is_sorted(layout.order_.begin(), layout.order_.end()))
    return Layout();
  return layout;
}

Layout Layout::channels_blocked(int64_t rank, int64_t block) {
  COLLAGE_CHECK(rank >= 2 && block > 0, "rank {} block {}", rank, block);
  Layout layout;
  for (int d = 0; d < rank; ++d) layout.order_.push_back(d);
  layout.blocks_ = {{1, block}};
  return layout;
}

Layout Layout::channels_last(int64_t rank) {
  Layout layout;
  if (rank < 3) return layout;
  layout.order_.push_back(0);
  for (int d = 2; d < rank; ++d) layout.order_.push_back(d);
  layout.order_.push_back(1);
  return layout;
}

std::string Layout::tag(int64_t rank) const {
  std::string text;
  if (is_plain()) {
    for (int64_t d = 0; d < rank; ++d) text += static_cast<char>('a' + d);
    return text;
  }
  for (int d : order_) {
    bool blocked =
        std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.dim == d; });
    text += static_cast<char>((blocked ? 'A' : 'a') + d);
  }
  for (const Block& b : blocks_) text += std::to_string(b.size) + static_cast<char>('a' + b.dim);
  return text;
}

std::string Layout::to_string() const { return is_plain() ? "plain" : tag(0); }

Shape Layout::physical_shape(const Shape& logical) const {
  if (is_plain()) return logical;
  COLLAGE_CHECK(order_.size() == logical.size(), "layout {} on rank {}", to_string(),
                logical.size());
  Shape outer = logical;
  for (const Block& b : blocks_) {
    auto& extent = outer[static_cast<size_t>(b.dim)];
    extent = (extent + b.size - 1) / b.size;
  }
  Shape physical;
  for (int d : order_) physical.push_back(outer[static_cast<size_t>(d)]);
  for (const Block& b : blocks_) physical.push_back(b.size);
  return physical;
}

size_t Layout::physical_bytes(const Shape& logical, DType dtype) const {
  return static_cast<size_t>(num_elements(physical_shape(logical))) * dtype_size(dtype);
}

int64_t Layout::offset(const Shape& logical, const Shape& index) const {
  Shape physical = physical_shape(logical);
  Shape outer = index, inner(blocks_.size());
  for (size_t i = blocks_.size(); i-- > 0;) {  // the innermost block takes the fastest part
    auto& value = outer[static_cast<size_t>(blocks_[i].dim)];
    inner[i] = value % blocks_[i].size;
    value /= blocks_[i].size;
  }
  int64_t offset = 0;
  size_t axis = 0;
  if (is_plain()) {
    for (size_t d = 0; d < index.size(); ++d) offset = offset * physical[d] + index[d];
    return offset;
  }
  for (int d : order_) offset = offset * physical[axis++] + outer[static_cast<size_t>(d)];
  for (int64_t i : inner) offset = offset * physical[axis++] + i;
  return offset;
}

}  // namespace collage
