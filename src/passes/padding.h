// Moves an nn.pad in front of a window into the window's own padding.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace collage {

// Returns the attribute `padding` of a convolution or pooling that includes what `pad` adds to its
// data. None if `pad` cuts, repeats elements, or pads batch or channels.
std::optional<Ints> padding_with(const CallNode& pad, const CallNode& window);

}  // namespace collage
