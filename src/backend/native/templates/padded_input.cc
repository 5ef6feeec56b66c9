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

namespace {

/// A position along dimension `d`, counted from the first that is read: in the map, cut off there,
/// and whether it was cut off.
struct Position {
  HExpr at, outside = Halide::Internal::const_false();
  bool may_be_outside = false;
};

/// `divide_loops`: what is computed where nothing is cut off has a loop of its own.
Position position(const ConvShape& s, int d, const HExpr& padded, bool divide_loops) {
  Position p{padded - to_int(s.pad[d])};
  const bool below = s.pad[d] > 0;
  const bool above =
      (s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] - s.pad[d] >= s.in[d];
  if (below) p.outside = p.outside || p.at < 0;
  if (above) p.outside = p.outside || p.at >= to_int(s.in[d]);
  p.may_be_outside = below || above;
  if (p.may_be_outside)
    p.at = Halide::clamp(divide_loops ? Halide::likely(p.at) : p.at, 0, to_int(s.in[d] - 1));
  return p;
}

HExpr zero_outside(const HExpr& outside, const HExpr& value) {
  const HExpr simple = Halide::Internal::simplify(outside);
  if (Halide::Internal::is_const_zero(simple)) return value;
  return Halide::select(simple, Halide::Internal::make_zero(value.type()), Halide::likely(value));
}

}  // namespace

HExpr value_in_rows(const ConvShape& s, const Access& input, Coords at) {
  HExpr outside;
  for (int d = 0; d < 3; ++d) {
    const Position p = position(s, d, at.logical[2 + d], d == 2);
    at.logical[2 + d] = p.at;
    outside = p.outside;
  }
  return zero_outside(outside, input(at));
}

Func padded_input(const ConvShape& s, const Access& input, ChannelLayout layout) {
  Var l("l"), x("x"), y("y"), z("z"), c("c"), n("n");
  const Var* axes[3] = {&z, &y, &x};
  std::vector<HExpr> logical{n, c, HExpr(), HExpr(), HExpr()};
  HExpr outside = Halide::Internal::const_false();
  for (int d = 0; d < 3; ++d) {
    const Position p = position(s, d, *axes[d], true);
    outside = outside || p.outside;
    // Rows are copied in whole vectors, the last of which may end beyond them.
    const bool beyond = layout == ChannelLayout::kPlain && d == 2 && !p.may_be_outside;
    logical[2 + d] = beyond ? Halide::min(Halide::likely(p.at), to_int(s.in[d] - 1)) : p.at;
  }
  const bool blocked = layout == ChannelLayout::kBlocked;
  Coords at{logical, {}, {}};
  if (blocked) {
    at.block = c;
    at.lane = l;
    at.logical[1] = HExpr(c) * kChannelBlock + l;
    if (s.in_channels % kChannelBlock != 0)
      at.logical[1] = Halide::min(at.logical[1], to_int(s.in_channels - 1));
  }
  const HExpr value = zero_outside(outside, input(at));
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
