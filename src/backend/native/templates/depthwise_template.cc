#include "backend/native/templates/depthwise_template.h"

#include <algorithm>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/padded_input.h"
#include "backend/native/templates/register_tile.h"

namespace collage::native {

namespace {

constexpr int kPlainLanes = 16;  // pixels of a row side by side

bool is_plain(const ConvProblem& p) { return p.in_layout == ChannelLayout::kPlain; }
bool is_blocked(const ConvProblem& p) { return p.in_layout == ChannelLayout::kBlocked; }
bool has_channels_last(const ConvProblem& p) { return p.in_layout == ChannelLayout::kLast; }

/// Whether a task copies its input with what pads it, as it does what is computed; else taps
/// outside the map are left out.
bool copies_input(const ConvProblem& p) {
  return !p.input_is_buffer || (is_plain(p) && needs_padding(p.shape));
}

/// Channels side by side; 0 where they do not divide into vectors.
int64_t channel_lanes(const ConvProblem& p) {
  if (is_plain(p)) return 1;
  if (is_blocked(p)) return kChannelBlock;
  return p.shape.in_channels % 16 == 0 ? 16 : p.shape.in_channels % 8 == 0 ? 8 : 0;
}

/// Rows of a task: as many as fit, in at least so many strips if these keep four rows, which divide
/// the height if that costs less than half of them.
int64_t strip_rows(int64_t height, int64_t most, int64_t strips) {
  int64_t rows = std::clamp<int64_t>(most, 1, height);
  while (rows > 4 && ceil_div(height, rows) < strips) --rows;
  for (int64_t d = rows; d > rows / 2; --d)
    if (height % d == 0) return d;
  return rows;
}

/// Channels that a task may have where they are last: a multiple of it. Threads that write side by
/// side into the same lines of memory wait for each other.
int64_t channels_apart(const ConvProblem& p) {
  constexpr int64_t kLine = 64;  // elements, of a byte or more
  const int64_t channels = p.shape.in_channels;
  return channels % kLine == 0 ? kLine : channels;
}

/// Channels of a task where they are last: equally many, in as many spans as are wanted if
/// possible.
int64_t channel_span(const ConvProblem& p, int64_t wanted) {
  const int64_t channels = p.shape.in_channels, most = channels / channels_apart(p);
  int64_t spans = std::min(most, wanted);
  while (most % spans != 0) ++spans;
  return channels / spans;
}

}  // namespace

std::string DepthwiseSchedule::to_string() const {
  std::string text = "depthwise x" + std::to_string(x_tile) + " y" + std::to_string(y_tile) +
                     " strip" + std::to_string(strip);
  return span > 0 ? text + " span" + std::to_string(span) : text;
}

bool is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels;
}

std::vector<DepthwiseSchedule> depthwise_schedules(const ConvProblem& p, int threads, bool avx512) {
  const ConvShape& s = p.shape;
  const int64_t height = s.out[1], width = s.out[2], lanes = channel_lanes(p);
  if (lanes == 0) return {};
  const int64_t apart = has_channels_last(p) ? channels_apart(p) : lanes;
  // At least so many, if possible: a strip that is not copied costs nothing.
  const int64_t tasks = int64_t{copies_input(p) ? 4 : 8} * threads;
  const int64_t units = s.batch * s.out[0] * ceil_div(s.in_channels, apart);
  const int64_t row_bytes = 4 * lanes * s.in[2] * s.stride[1] * s.kernel[0];
  const int64_t most = copies_input(p) ? 65536 / std::max<int64_t>(1, row_bytes) : height;
  const int64_t strip = strip_rows(height, most, ceil_div(tasks, units));
  const int budget = avx512 ? 14 : 6;
  std::vector<DepthwiseSchedule> found;
  const int64_t across = is_plain(p) ? ceil_div(width, kPlainLanes) : width;
  int best = 1;
  double cost = 1e9;
  for (int x = 1; x <= std::min<int64_t>(across, budget); ++x) {
    const double waste = in_tiles(across, x) * (x < 4 ? 1.2 : 1.0);
    if (waste <= cost) {
      cost = waste;
      best = x;
    }
  }
  const int64_t row_tasks = s.batch * s.out[0] * ceil_div(height, strip);
  const int span = has_channels_last(p) ? to_int(channel_span(p, ceil_div(tasks, row_tasks))) : 0;
  found.push_back({best, 1, to_int(strip), span});
  if (best <= budget / 2 && strip >= 2) found.push_back({best, 2, to_int(strip), span});
  return found;
}

std::vector<int64_t> packed_depthwise_extents(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const int64_t channels = s.in_channels, x = s.kernel[2], y = s.kernel[1], z = s.kernel[0];
  if (is_plain(p)) return {x, y, z, channels};
  if (has_channels_last(p)) return {channels, x, y, z};
  return {kChannelBlock, x, y, z, ceil_div(channels, kChannelBlock)};
}

PackedWeights<float> pack_depthwise_weights(const ConvProblem& p, const float* weights) {
  const ConvShape& s = p.shape;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], channels = s.in_channels;
  const int64_t lanes = is_plain(p) ? 1 : has_channels_last(p) ? channels : kChannelBlock;
  PackedWeights<float> packed(ceil_div(channels, lanes) * taps * lanes);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      packed[(c / lanes * taps + t) * lanes + c % lanes] = weights[c * taps + t];
  return packed;
}

Halide::Func build_depthwise(const ConvProblem& p, const DepthwiseSchedule& sched,
                             const Access& input, Halide::ImageParam weights,
                             const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const bool copied = copies_input(p);
  Func padded = padded_input(s, input, p.in_layout);
  Func acc("acc"), out("output");
  Var l("l"), x("x"), y("y"), z("z"), c("c"), n("n");
  RDom r(0, to_int(s.kernel[2]), 0, to_int(s.kernel[1]), 0, to_int(s.kernel[0]), "r");
  HExpr ix = x * to_int(s.stride[2]) + r[0] * to_int(s.dilation[2]);
  HExpr iy = y * to_int(s.stride[1]) + r[1] * to_int(s.dilation[1]);
  HExpr iz = z * to_int(s.stride[0]) + r[2] * to_int(s.dilation[0]);
  if (pads_dim(s, 0)) r.where(tap_inside(s, 0, z, r[2]));
  if (pads_dim(s, 1) && !copied) r.where(tap_inside(s, 1, y, r[1]));
  if (is_blocked(p)) {
    HExpr channel = HExpr(c) * kChannelBlock + l;
    HExpr value = copied ? padded(l, ix, iy, iz, c, n)
                         : value_in_rows(s, input, {{n, channel, iz, iy, ix}, c, l});
    acc(l, x, y, z, c, n) = 0.0f;
    acc(l, x, y, z, c, n) += weights(l, r[0], r[1], r[2], c) * value;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    if (ragged) channel = Halide::min(channel, to_int(s.out_channels - 1));
    HExpr result = epilogue(acc(l, x, y, z, c, n), Coords{{n, channel, z, y, x}, c, l});
    if (ragged) {
      result = Halide::select(HExpr(c) * kChannelBlock + l < to_int(s.out_channels), result,
                              Halide::Internal::make_zero(result.type()));
    }
    out(l, x, y, z, c, n) = result;
    out.bound(l, 0, kChannelBlock);
  } else if (has_channels_last(p)) {
    HExpr value =
        copied ? padded(c, ix, iy, iz, n) : value_in_rows(s, input, {{n, c, iz, iy, ix}, {}, {}});
    acc(c, x, y, z, n) = 0.0f;
    acc(c, x, y, z, n) += weights(c, r[0], r[1], r[2]) * value;
    out(c, x, y, z, n) = epilogue(acc(c, x, y, z, n), Coords{{n, c, z, y, x}, {}, {}});
    out.bound(c, 0, to_int(s.out_channels));
  } else {
    HExpr value = copied ? padded(ix, iy, iz, c, n) : input(Coords{{n, c, iz, iy, ix}, {}, {}});
    acc(x, y, z, c, n) = 0.0f;
    acc(x, y, z, c, n) += weights(r[0], r[1], r[2], c) * value;
    out(x, y, z, c, n) = epilogue(acc(x, y, z, c, n), Coords{{n, c, z, y, x}, {}, {}});
  }
  out.bound(x, 0, to_int(s.out[2]));

  const int strip = to_int(std::min<int64_t>(sched.strip, s.out[1]));
  const int yt = std::min(sched.y_tile, strip);
  // Vectors lie along `lane` in every stage, of so many elements.
  const Var lane = is_plain(p) ? x : is_blocked(p) ? l : c;
  const int lanes =
      to_int(is_plain(p) ? std::min<int64_t>(kPlainLanes, s.out[2]) : channel_lanes(p));
  const int xt = to_int(is_plain(p) ? std::min<int64_t>(static_cast<int64_t>(sched.x_tile) * lanes,
                                                        s.out[2] / lanes * lanes)
                                    : std::min<int64_t>(sched.x_tile, s.out[2]));
  Var xo("xo"), xi("xi"), yo("yo"), yi("yi"), ys("ys"), task("task"), block("block"), span("span");
  out.split(x, xo, xi, xt).split(y, ys, y, strip).split(y, yo, yi, yt);
  if (is_blocked(p)) {
    out.reorder(l, xi, yi, xo, yo, c, ys, z, n).vectorize(l).unroll(xi).unroll(yi);
  } else if (has_channels_last(p)) {
    out.split(c, span, block, sched.span).split(block, block, l, lanes);
    out.reorder(l, xi, yi, xo, yo, block, span, ys, z, n).vectorize(l).unroll(xi).unroll(yi);
  } else {
    out.reorder(xi, yi, xo, yo, c, ys, z, n).vectorize(xi, lanes).unroll(yi);
  }
  // Rows outermost, as pointwise convolutions before and after divide them.
  out.fuse(has_channels_last(p) ? span : c, ys, task).fuse(task, z, task);
  out.fuse(task, n, task).parallel(task);
  acc.compute_at(out, xo).vectorize(lane, lanes).unroll(x).unroll(y);
  if (is_plain(p)) {
    acc.update().reorder(x, y, r[0], r[1], r[2]);
  } else {
    acc.update().reorder(lane, x, r[0], y, r[1], r[2]);
  }
  acc.update().vectorize(lane, lanes).unroll(x).unroll(y).unroll(r[0]);
  const bool few_taps = s.kernel[0] * s.kernel[1] * s.kernel[2] <= 27 && !pads_dim(s, 0);
  if (few_taps) acc.update().unroll(r[1]).unroll(r[2]);
  if (copied) {
    padded.compute_at(out, has_channels_last(p) ? block : task);
    if (is_plain(p)) {
      padded.vectorize(padded.args()[0], kPlainLanes, TailStrategy::RoundUp);
    } else {
      padded.vectorize(padded.args()[0], lanes);
    }
  }
  return out;
}

}  // namespace collage::native
