// An nn.pad in front of a window as the window's own padding.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace collage {

// The attribute `padding` of a convolution or pooling that takes in what `pad` adds to its data.
// None where it cannot: `pad` cuts, repeats elements, or pads batch or channels.
std::optional<Ints> padding_with(const CallNode& pad, const CallNode& window);

}  // namespace collage
