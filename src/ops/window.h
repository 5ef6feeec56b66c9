// Sliding windows of convolutions and poolings. Lists are full length, one entry a spatial
// dimension; padding has all begins, then all ends.
#pragma once

#include "ops/type_rules.h"

namespace collage {

struct Window {
  Ints kernel, strides, dilation, pad_begin, pad_end;
  size_t rank() const { return kernel.size(); }
};

// Reads and checks strides, dilation and padding: lengths; strides, dilation and kernel positive;
// padding not negative.
Result<Window> make_window(const Attrs& attrs, Ints kernel);
// Does the same for attributes that a type rule has accepted.
Window known_window(const Attrs& attrs, Ints kernel);

// Returns how many window positions fit along spatial dimension `dim` of an input of that extent.
// With ceil_mode a last partial window counts if it starts inside the input or the padding before
// it.
Result<int64_t> window_positions(const Window& window, size_t dim, int64_t extent, bool ceil_mode);

// Returns whether some position along that dimension has no element of the window inside the input.
bool sees_only_padding(const Window& window, size_t dim, int64_t extent, int64_t positions);

// "nn.conv" + 2 + "d"
std::string spatial_name(std::string_view prefix, size_t spatial, std::string_view suffix = "d");

}  // namespace collage
