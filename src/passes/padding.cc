#include "passes/padding.h"

namespace collage {

std::optional<Ints> padding_with(const CallNode& pad, const CallNode& window) {
  if (pad.attrs.string("pad_mode") != "constant") return std::nullopt;
  const IntLists& widths = pad.attrs.int_lists("pad_width");
  Ints padding = window.attrs.ints("padding");
  const size_t spatial = padding.size() / 2;
  if (widths.size() != spatial + 2) return std::nullopt;
  for (size_t i = 0; i < widths.size(); ++i)
    for (size_t side = 0; side < 2; ++side) {
      if (widths[i][side] < 0 || (i < 2 && widths[i][side] != 0)) return std::nullopt;
      if (i >= 2) padding[i - 2 + side * spatial] += widths[i][side];
    }
  return padding;
}

}  // namespace collage
