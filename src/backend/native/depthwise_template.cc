#include "backend/native/depthwise_template.h"

#include <algorithm>

#include "backend/native/halide_names.h"
#include "backend/native/padded_input.h"

namespace collage::native {

std::string DepthwiseSchedule::to_string() const {
  return "depthwise x" + std::to_string(x_tile) + " y" + std::to_string(y_tile) + " strip" +
         std::to_string(strip);
}

bool is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels;
}

std::vector<DepthwiseSchedule> depthwise_schedules(const ConvProblem& p, int threads, bool avx512) {
  const ConvShape& s = p.shape;
  const bool blocked = p.in_layout == ChannelLayout::kBlocked;
  const int64_t height = s.out[1], width = s.out[2];
  const int64_t units =
      s.batch * s.out[0] * (blocked ? ceil_div(s.in_channels, kChannelBlock) : s.in_channels);
  const int64_t row_bytes = 4 * (blocked ? 16 : 1) * s.in[2] * s.stride[1] * s.kernel[0];
  int64_t strip = std::clamp<int64_t>(65536 / std::max<int64_t>(1, row_bytes), 1, height);
  while (strip > 4 && units * ceil_div(height, strip) < 4 * threads) strip = (strip + 1) / 2;
  for (int64_t d = strip; d > strip / 2; --d) {
    if (height % d == 0) {
      strip = d;
      break;
    }
  }
  const int budget = avx512 ? 14 : 6;
  std::vector<DepthwiseSchedule> found;
  const int64_t across = blocked ? width : (width + 15) / 16;
  int best = 1;
  double cost = 1e9;
  for (int x = 1; x <= std::min<int64_t>(across, budget); ++x) {
    const double waste = static_cast<double>(round_up(across, x)) / static_cast<double>(across) *
                         (x < 4 ? 1.2 : 1.0);
    if (waste <= cost) {
      cost = waste;
      best = x;
    }
  }
  found.push_back({best, 1, to_int(strip)});
  if (best <= budget / 2 && strip >= 2) found.push_back({best, 2, to_int(strip)});
  return found;
}

std::vector<int64_t> packed_depthwise_extents(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (p.in_layout == ChannelLayout::kBlocked) {
    return {kChannelBlock, s.kernel[2], s.kernel[1], s.kernel[0],
            ceil_div(s.in_channels, kChannelBlock)};
  }
  return {s.kernel[2], s.kernel[1], s.kernel[0], s.in_channels};
}

PackedWeights<float> pack_depthwise_weights(const ConvProblem& p, const float* weights) {
  const ConvShape& s = p.shape;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  if (p.in_layout != ChannelLayout::kBlocked) {
    PackedWeights<float> same(s.in_channels * taps);
    std::copy_n(weights, s.in_channels * taps, same.data());
    return same;
  }
  const int64_t blocks = ceil_div(s.in_channels, kChannelBlock);
  PackedWeights<float> packed(blocks * taps * kChannelBlock);
  for (int64_t c = 0; c < s.in_channels; ++c) {
    for (int64_t t = 0; t < taps; ++t)
      packed[(c / kChannelBlock * taps + t) * kChannelBlock + c % kChannelBlock] =
          weights[c * taps + t];
  }
  return packed;
}

Halide::Func build_depthwise(const ConvProblem& p, const DepthwiseSchedule& sched,
                             const Access& input, Halide::ImageParam weights,
                             const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const bool blocked = p.in_layout == ChannelLayout::kBlocked;
  const bool copied = needs_padding(s) || !p.input_is_buffer;
  Func padded = padded_input(s, input, p.in_layout);
  Func acc("acc"), out("output");
  Var l("l"), x("x"), y("y"), z("z"), c("c"), n("n");
  RDom r(0, to_int(s.kernel[2]), 0, to_int(s.kernel[1]), 0, to_int(s.kernel[0]), "r");
  Expr ix = x * to_int(s.stride[2]) + r[0] * to_int(s.dilation[2]);
  Expr iy = y * to_int(s.stride[1]) + r[1] * to_int(s.dilation[1]);
  Expr iz = z * to_int(s.stride[0]) + r[2] * to_int(s.dilation[0]);
  if (pads_dim(s, 0)) r.where(tap_inside(s, 0, z, r[2]));
  if (blocked) {
    Expr value = copied ? padded(l, ix, iy, iz, c, n)
                        : input(Coords{{n, Expr(c) * kChannelBlock + l, iz, iy, ix}, c, l});
    acc(l, x, y, z, c, n) = 0.0f;
    acc(l, x, y, z, c, n) += weights(l, r[0], r[1], r[2], c) * value;
    Expr channel = Expr(c) * kChannelBlock + l;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    if (ragged) channel = Halide::min(channel, to_int(s.out_channels - 1));
    Expr result = epilogue(acc(l, x, y, z, c, n), Coords{{n, channel, z, y, x}, c, l});
    if (ragged) {
      result = Halide::select(Expr(c) * kChannelBlock + l < to_int(s.out_channels), result,
                              Halide::Internal::make_zero(result.type()));
    }
    out(l, x, y, z, c, n) = result;
    out.bound(l, 0, kChannelBlock);
  } else {
    Expr value = copied ? padded(ix, iy, iz, c, n) : input(Coords{{n, c, iz, iy, ix}, {}, {}});
    acc(x, y, z, c, n) = 0.0f;
    acc(x, y, z, c, n) += weights(r[0], r[1], r[2], c) * value;
    out(x, y, z, c, n) = epilogue(acc(x, y, z, c, n), Coords{{n, c, z, y, x}, {}, {}});
  }
  out.bound(x, 0, to_int(s.out[2]));

  const int strip = to_int(std::min<int64_t>(sched.strip, s.out[1]));
  const int yt = std::min(sched.y_tile, strip);
  const int vec = blocked ? 1 : to_int(std::min<int64_t>(16, s.out[2]));
  const int xt = blocked ? to_int(std::min<int64_t>(sched.x_tile, s.out[2]))
                         : to_int(std::min<int64_t>(static_cast<int64_t>(sched.x_tile) * vec,
                                                    s.out[2] / vec * vec));
  Var xo("xo"), xi("xi"), yo("yo"), yi("yi"), ys("ys"), task("task");
  out.split(x, xo, xi, xt).split(y, ys, y, strip).split(y, yo, yi, yt);
  if (blocked) {
    out.reorder(l, xi, yi, xo, yo, ys, z, c, n).vectorize(l).unroll(xi).unroll(yi);
  } else {
    out.reorder(xi, yi, xo, yo, ys, z, c, n).vectorize(xi, vec).unroll(yi);
  }
  out.fuse(ys, z, task).fuse(task, c, task).fuse(task, n, task).parallel(task);
  acc.compute_at(out, xo);
  const bool few_taps = s.kernel[0] * s.kernel[1] * s.kernel[2] <= 27 && !pads_dim(s, 0);
  if (blocked) {
    acc.vectorize(l).unroll(x).unroll(y);
    acc.update().reorder(l, x, y, r[0], r[1], r[2]).vectorize(l).unroll(x).unroll(y).unroll(r[0]);
  } else {
    acc.vectorize(x, vec).unroll(x).unroll(y);
    acc.update().reorder(x, y, r[0], r[1], r[2]).vectorize(x, vec).unroll(x).unroll(y).unroll(r[0]);
  }
  if (few_taps) acc.update().unroll(r[1]).unroll(r[2]);
  if (copied) {
    padded.compute_at(out, task);
    Var first = padded.args()[0];
    if (blocked) {
      padded.vectorize(first);
    } else {
      padded.vectorize(first, 16, TailStrategy::RoundUp);
    }
  }
  return out;
}

}  // namespace collage::native
