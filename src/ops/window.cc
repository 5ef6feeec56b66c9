#include "ops/window.h"

#include "base/integers.h"

namespace collage {

namespace {
constexpr int64_t kMaxAttr = int64_t{1} << 31;  // keeps every later sum and product within 128 bits

Status check_list(const Ints& list, size_t length, int64_t least, std::string_view what) {
  if (list.size() != length)
    return bad_model("{} has {} entries, not {}", what, list.size(), length);
  for (int64_t value : list)
    if (value < least || value > kMaxAttr) return bad_model("{} {} is out of range", what, value);
  return {};
}
}  // namespace

Window known_window(const Attrs& attrs, Ints kernel) {
  const Ints& padding = attrs.ints("padding");
  auto middle = padding.begin() + static_cast<std::ptrdiff_t>(padding.size() / 2);
  return {std::move(kernel),
          attrs.ints("strides"),
          attrs.ints("dilation"),
          {padding.begin(), middle},
          {middle, padding.end()}};
}

Result<Window> make_window(const Attrs& attrs, Ints kernel) {
  size_t n = kernel.size();
  for (int64_t value : kernel)
    if (value < 1) return bad_model("kernel size {} is out of range", value);
  TRY(check_list(attrs.ints("strides"), n, 1, "strides"));
  TRY(check_list(attrs.ints("dilation"), n, 1, "dilation"));
  TRY(check_list(attrs.ints("padding"), 2 * n, 0, "padding"));
  return known_window(attrs, std::move(kernel));
}

Result<int64_t> window_positions(const Window& window, size_t dim, int64_t extent, bool ceil_mode) {
  using Wide = __int128;
  Wide padded = Wide{extent} + window.pad_begin[dim] + window.pad_end[dim];
  Wide span = Wide{window.dilation[dim]} * (window.kernel[dim] - 1) + 1;
  Wide free = padded - span;
  if (free < 0)
    return bad_model("a window of {} does not fit extent {} of spatial dimension {}",
                     static_cast<int64_t>(span), extent, dim);
  Wide stride = window.strides[dim];
  Wide positions = (free + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (positions - 1) * stride >= Wide{extent} + window.pad_begin[dim]) --positions;
  return static_cast<int64_t>(positions);
}

bool sees_only_padding(const Window& window, size_t dim, int64_t extent, int64_t positions) {
  const int64_t stride = window.strides[dim], step = window.dilation[dim];
  int64_t start = -window.pad_begin[dim];
  if (positions > 0 && start + (positions - 1) * stride >= extent) return true;
  // Where the first element is inside or before, only dilation skips the rest.
  for (int64_t i = 0; i < positions && start < 0; ++i, start += stride) {
    const int64_t before = ceil_div(-start, step);  // elements
    if (before >= window.kernel[dim] || start + before * step >= extent) return true;
  }
  return false;
}

std::string spatial_name(std::string_view prefix, size_t spatial, std::string_view suffix) {
  return fmt::format("{}{}{}", prefix, spatial, suffix);
}

}  // namespace collage
