#include "frontend/onnx/operators/window.h"

#include <algorithm>

#include "base/integers.h"

namespace collage::frontend {

namespace {

// Extents that arithmetic on windows cannot overflow with.
constexpr int64_t kMaxWindow = int64_t{1} << 30;

Status check_list(const char* name, const Ints& values, size_t length, int64_t least) {
  if (values.size() != length)
    return bad_model("attribute '{}' has {} values, not {}", name, values.size(), length);
  for (int64_t value : values)
    if (value < least || value > kMaxWindow)
      return bad_model("attribute '{}' holds {}, which is outside {} to {}", name, value, least,
                       kMaxWindow);
  return {};
}

}  // namespace

Result<Window> read_window(const NodeContext& node, const Shape& data, const Ints& kernel) {
  if (data.size() < 3) return bad_model("data of rank {}, at least 3 is needed", data.size());
  const size_t spatial = data.size() - 2;
  Window window;
  window.kernel =
      kernel.empty() || node.has_attr("kernel_shape") ? TRY(node.ints("kernel_shape")) : kernel;
  TRY(check_list("kernel_shape", window.kernel, spatial, 1));
  if (!kernel.empty() && window.kernel != kernel)
    return bad_model("kernel_shape {} differs from the weight's {}", shape_to_string(window.kernel),
                     shape_to_string(kernel));
  window.strides = TRY(node.ints("strides", Ints(spatial, 1)));
  TRY(check_list("strides", window.strides, spatial, 1));
  window.dilations = TRY(node.ints("dilations", Ints(spatial, 1)));
  TRY(check_list("dilations", window.dilations, spatial, 1));
  window.padding = TRY(node.ints("pads", Ints(2 * spatial, 0)));
  TRY(check_list("pads", window.padding, 2 * spatial, 0));
  window.auto_pad = TRY(node.text("auto_pad", "NOTSET"));
  if (window.auto_pad == "NOTSET") return window;
  if (window.auto_pad != "SAME_UPPER" && window.auto_pad != "SAME_LOWER" &&
      window.auto_pad != "VALID")
    return bad_model("auto_pad '{}' is unknown", window.auto_pad);
  window.padding.assign(2 * spatial, 0);
  if (window.auto_pad == "VALID") return window;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = data[i + 2], stride = window.strides[i];
    const int64_t outputs = ceil_div(extent, stride);
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * stride + window.span(i) - extent);
    window.pad_same(i, total);
  }
  return window;
}

void Window::pad_same(size_t dim, int64_t total) {
  padding[dim] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  padding[dim + rank()] = total - padding[dim];
}

Result<std::string> op_of_rank(const std::string& stem, size_t spatial, const std::string& tail) {
  if (spatial < 1 || spatial > 3) return unsupported("{} spatial dimensions", spatial);
  return fmt::format("{}{}d{}", stem, spatial, tail);
}

}  // namespace collage::frontend
