#include "backend/native/templates/padded_input.h"

#include "backend/native/codegen/halide_names.h"

namespace collage::native {

bool pads_dim(const ConvShape& s, int d) {
  return s.pad[d] != 0 ||
         (s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] >= s.in[d];
}

bool needs_padding(const ConvShape& s) {
  return pads_dim(s, 0) || pads_dim(s, 1) || pads_dim(s, 2);
}

HExpr tap_inside(const ConvShape& s, int d, const HExpr& out, const HExpr& tap) {
  HExpr at = out * to_int(s.stride[d]) + tap * to_int(s.dilation[d]) - to_int(s.pad[d]);
  return at >= 0 && at < to_int(s.in[d]);
}

Func padded_input(const ConvShape& s, const Access& input, ChannelLayout layout) {
  Var l("l"), x("x"), y("y"), z("z"), c("c"), n("n");
  const Var* axes[3] = {&z, &y, &x};
  std::vector<HExpr> logical{n, c, HExpr(), HExpr(), HExpr()};
  HExpr outside = Halide::Internal::const_false();
  for (int d = 0; d < 3; ++d) {
    HExpr at = *axes[d] - to_int(s.pad[d]);
    const bool below = s.pad[d] > 0;
    const bool above =
        (s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] - s.pad[d] >= s.in[d];
    if (below) outside = outside || at < 0;
    if (above) outside = outside || at >= to_int(s.in[d]);
    // Rows are copied in whole vectors, the last of which may end beyond them.
    const bool beyond = layout == ChannelLayout::kPlain && d == 2;
    if (below || above) {
      at = Halide::clamp(Halide::likely(at), 0, to_int(s.in[d] - 1));
    } else if (beyond) {
      at = Halide::min(Halide::likely(at), to_int(s.in[d] - 1));
    }
    logical[2 + d] = at;
  }
  outside = Halide::Internal::simplify(outside);
  const bool blocked = layout == ChannelLayout::kBlocked;
  Coords at{logical, {}, {}};
  if (blocked) {
    at.block = c;
    at.lane = l;
    at.logical[1] = HExpr(c) * kChannelBlock + l;
    if (s.in_channels % kChannelBlock != 0)
      at.logical[1] = Halide::min(at.logical[1], to_int(s.in_channels - 1));
  }
  HExpr value = input(at);
  if (!Halide::Internal::is_const_zero(outside)) {
    value =
        Halide::select(outside, Halide::Internal::make_zero(value.type()), Halide::likely(value));
  }
  Func f("padded");
  if (blocked) {
    f(l, x, y, z, c, n) = value;
  } else if (layout == ChannelLayout::kLast) {
    f(c, x, y, z, n) = value;
  } else {
    f(x, y, z, c, n) = value;
  }
  return f;
}

}  // namespace collage::native
