// A convolution's input with what pads it: as a copy, or read where it lies; and which taps of the
// kernel see the map at all.
#pragma once

#include "backend/native/templates/conv_problem.h"

namespace collage::native {

/// Whether some output of spatial dimension `d` (depth, height, width) reads outside the map.
bool pads_dim(const ConvShape& shape, int d);
bool needs_padding(const ConvShape& shape);

/// Whether tap `tap` of dimension `d` reads inside the map at output position `out`.
Halide::Expr tap_inside(const ConvShape& shape, int d, const Halide::Expr& out,
                        const Halide::Expr& tap);

/// The input in padded coordinates (the first read element at 0), zero outside the map. Dimensions,
/// innermost first: (lane, x, y, z, block, n) blocked, (c, x, y, z, n) with channels last, (x, y,
/// z, c, n) plain.
Halide::Func padded_input(const ConvShape& shape, const Access& input, ChannelLayout layout);

/// The input where it lies, at padded coordinates: zero on the left and right of the map. Above and
/// below, in front and behind the nearest row: such taps are to be left out.
Halide::Expr value_in_rows(const ConvShape& shape, const Access& input, Coords at);

}  // namespace collage::native
