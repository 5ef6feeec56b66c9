#include "backend/native/conv_template.h"

#include <algorithm>
#include <cmath>

#include "backend/native/halide_names.h"
#include "backend/native/padded_input.h"

namespace collage::native {
namespace {

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

/// How channels are blocked for the kChannels micro-kernel. `groups` counts groups after small ones
/// were joined into block-diagonal groups of 16 channels.
struct Blocking {
  bool ok = false;
  bool diagonal = false;
  int64_t groups = 1, group_in = 1, group_out = 1;  ///< channels per (joined) group
  int64_t ci = 1, cb = 1;  ///< reduction: cb blocks of ci input channels per group
  int64_t kb = 1;          ///< blocks of output channels, all groups
};

Blocking blocking_of(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  Blocking b;
  b.groups = s.groups;
  b.group_in = s.in_channels / s.groups;
  b.group_out = s.out_channels / s.groups;
  if (s.groups > 1) {
    if (b.group_in == b.group_out && kChannelBlock % b.group_in == 0 &&
        s.in_channels % kChannelBlock == 0) {
      b.diagonal = b.group_in < kChannelBlock;
      b.groups = s.in_channels / kChannelBlock;
      b.group_in = b.group_out = kChannelBlock;
    }
    if (b.group_in % kChannelBlock != 0 || b.group_out % kChannelBlock != 0) return b;
  }
  if (p.in_layout == ChannelLayout::kBlocked) {
    b.ci = kChannelBlock;
    b.cb = ceil_div(b.group_in, kChannelBlock);
  } else {
    b.ci = b.group_in <= kChannelBlock ? b.group_in : largest_divisor(b.group_in, kChannelBlock);
    b.cb = b.group_in / b.ci;
  }
  b.kb = ceil_div(s.out_channels, kChannelBlock);
  b.ok = true;
  return b;
}

/// Weights of so many bytes come from memory: the first schedule stands a second time, reading them
/// ahead, or where they serve one pass only, in several sequences side by side.
constexpr double kHeavyWeights = 1 << 20;

Halide::Func build_channels(const ConvProblem& p, const ConvSchedule& sched, const Access& input,
                            ImageParam weights, const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const Blocking b = blocking_of(p);
  const bool in_blocked = p.in_layout == ChannelLayout::kBlocked;
  const bool out_blocked = p.out_layout == ChannelLayout::kBlocked;
  const bool copied = needs_padding(s) || !p.input_is_buffer;

  Var l("l"), x("x"), y("y"), z("z"), kb("kb"), n("n");
  Func padded = padded_input(s, input, p.in_layout);
  Func acc("acc");
  RDom r(0, to_int(b.ci), 0, to_int(s.kernel[2]), 0, to_int(s.kernel[1]), 0, to_int(s.kernel[0]), 0,
         to_int(b.cb), "r");
  RVar ci = r[0], kx = r[1], ky = r[2], kz = r[3], cb = r[4];
  {
    Expr ix = x * to_int(s.stride[2]) + kx * to_int(s.dilation[2]);
    Expr iy = y * to_int(s.stride[1]) + ky * to_int(s.dilation[1]);
    Expr iz = z * to_int(s.stride[0]) + kz * to_int(s.dilation[0]);
    Expr first = 0;  // first input block (or channel) of the group of kb
    if (b.groups > 1) {
      Expr group = kb / to_int(b.group_out / kChannelBlock);
      first = group * to_int(in_blocked ? b.group_in / kChannelBlock : b.group_in);
    }
    Expr value;
    if (in_blocked) {
      value =
          copied
              ? padded(ci, ix, iy, iz, first + cb, n)
              : input(Coords{{n, (first + cb) * kChannelBlock + ci, iz, iy, ix}, first + cb, ci});
    } else {
      Expr c = first + cb * to_int(b.ci) + ci;
      value = copied ? padded(ix, iy, iz, c, n) : input(Coords{{n, c, iz, iy, ix}, {}, {}});
    }
    // Taps that fall outside the map are skipped where a whole register tile agrees on them.
    if (pads_dim(s, 0)) r.where(tap_inside(s, 0, z, kz));
    if (pads_dim(s, 1) && sched.y_tile == 1 && s.out[1] <= 14) r.where(tap_inside(s, 1, y, ky));
    acc(l, x, y, z, kb, n) = 0.0f;
    acc(l, x, y, z, kb, n) += weights(l, ci, kx, ky, kz, cb, kb) * value;
  }

  Func core(out_blocked ? "output" : "core");
  {
    Expr channel = Expr(kb) * kChannelBlock + l;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    if (ragged) channel = Halide::min(channel, to_int(s.out_channels - 1));
    Expr value = epilogue(acc(l, x, y, z, kb, n), Coords{{n, channel, z, y, x}, kb, l});
    if (ragged && out_blocked) {
      value = Halide::select(Expr(kb) * kChannelBlock + l < to_int(s.out_channels), value,
                             Halide::Internal::make_zero(value.type()));
    }
    core(l, x, y, z, kb, n) = value;
  }
  core.bound(l, 0, kChannelBlock).bound(kb, 0, to_int(b.kb)).bound(x, 0, to_int(s.out[2]));

  const int kt = to_int(std::min<int64_t>(sched.k_tile, b.kb));
  const int xt = to_int(std::min<int64_t>(sched.x_tile, s.out[2]));
  const int strip = to_int(std::min<int64_t>(sched.strip, s.out[1]));
  const int yt =
      std::min(sched.y_tile, sched.split == ConvSchedule::Split::kRows ? strip : to_int(s.out[1]));
  const bool rows = sched.split == ConvSchedule::Split::kRows;

  Func out = core;
  Var k("k"), task("task"), ys("ys"), yo("yo"), xo("xo"), xi("xi"), yi("yi"), ko("ko"), ki("ki");
  if (!out_blocked) {
    out = Func("output");
    out(x, y, z, k, n) = core(k % kChannelBlock, x, y, z, k / kChannelBlock, n);
    Var xv("xv");
    const int vec = to_int(std::min<int64_t>(16, s.out[2]));
    if (rows) {
      out.split(y, ys, y, strip)
          .reorder(x, y, k, ys, z, n)
          .fuse(ys, z, ys)
          .fuse(ys, n, task)
          .parallel(task);
      core.compute_at(out, task);
    } else {
      out.fuse(k, n, task).parallel(task);
      core.compute_root();
    }
    out.vectorize(x, vec);
  }

  // The tile loops of the core.
  core.split(x, xo, xi, xt);
  core.split(kb, ko, ki, kt);
  if (rows && out_blocked) core.split(y, ys, y, strip);
  core.split(y, yo, yi, yt);
  const bool outer = out_blocked || !rows;  // the core has the parallel loop itself
  if (rows) {
    std::vector<Halide::VarOrRVar> order{l, ki, xi, yi};
    if (sched.k_inner) {
      order.insert(order.end(), {ko, xo, yo});
    } else {
      order.insert(order.end(), {xo, yo, ko});
    }
    if (outer) order.push_back(ys);
    order.insert(order.end(), {z, n});
    core.reorder(order);
    if (outer) core.fuse(ys, z, ys).fuse(ys, n, task).parallel(task);
  } else {
    Var kp("kp");
    core.split(ko, kp, ko, sched.k_task, TailStrategy::GuardWithIf)
        .reorder({l, ki, xi, yi, xo, yo, z, ko, n, kp})
        .fuse(n, kp, task)
        .parallel(task);
  }
  core.vectorize(l).unroll(ki).unroll(xi).unroll(yi);

  acc.compute_at(core, rows && sched.k_inner ? ko : xo);
  acc.vectorize(l).unroll(x).unroll(y).unroll(kb);
  const int unroll = to_int(largest_divisor(b.ci, 4));
  RVar cio("cio"), cii("cii"), cs("cs"), cbi("cbi");
  acc.update()
      .split(ci, cio, cii, unroll)
      .split(cb, cs, cbi, to_int(b.cb / sched.streams))
      .reorder(l, kb, x, y, cii, cs, cio, kx, ky, kz, cbi)
      .unroll(cs)
      .vectorize(l)
      .unroll(kb)
      .unroll(x)
      .unroll(y)
      .unroll(cii);

  if (copied) {
    Var pl = padded.args()[0];
    if (rows) {
      padded.compute_at(outer ? core : out, task);
      if (in_blocked) {
        padded.vectorize(pl);
      } else {
        padded.vectorize(pl, 16, TailStrategy::RoundUp);
      }
    } else {
      padded.compute_root();
      const std::vector<Var> v = padded.args();
      const size_t c = in_blocked ? 4 : 3;
      Var t("t");
      padded.fuse(v[c], v[c + 1], t).parallel(t);
      if (in_blocked) {
        padded.vectorize(pl);
      } else {
        padded.vectorize(pl, 16, TailStrategy::RoundUp);
      }
    }
  }
  return out;
}

Halide::Func build_pixels(const ConvProblem& p, const ConvSchedule& sched, const Access& input,
                          ImageParam weights, const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  const bool copied =
      needs_padding(s) || !p.input_is_buffer || p.in_layout == ChannelLayout::kBlocked;
  Var x("x"), y("y"), z("z"), k("k"), n("n");
  Func padded = padded_input(s, input, ChannelLayout::kPlain);
  Func acc("acc");
  RDom r(0, to_int(s.kernel[2]), 0, to_int(s.kernel[1]), 0, to_int(s.kernel[0]), 0,
         to_int(group_in), "r");
  RVar kx = r[0], ky = r[1], kz = r[2], rc = r[3];
  {
    Expr ix = x * to_int(s.stride[2]) + kx * to_int(s.dilation[2]);
    Expr iy = y * to_int(s.stride[1]) + ky * to_int(s.dilation[1]);
    Expr iz = z * to_int(s.stride[0]) + kz * to_int(s.dilation[0]);
    Expr c = s.groups == 1 ? Expr(rc) : (k / to_int(group_out)) * to_int(group_in) + rc;
    Expr value = copied ? padded(ix, iy, iz, c, n) : input(Coords{{n, c, iz, iy, ix}, {}, {}});
    if (pads_dim(s, 0)) r.where(tap_inside(s, 0, z, kz));
    acc(x, y, z, k, n) = 0.0f;
    acc(x, y, z, k, n) += weights(k, kx, ky, kz, rc) * value;
  }
  Func out("output");
  out(x, y, z, k, n) = epilogue(acc(x, y, z, k, n), Coords{{n, k, z, y, x}, {}, {}});
  out.bound(x, 0, to_int(s.out[2])).bound(k, 0, to_int(s.out_channels));

  const int vec = to_int(std::min<int64_t>(16, s.out[2]));
  const int xt =
      to_int(std::min<int64_t>(static_cast<int64_t>(sched.x_tile) * vec, s.out[2] / vec * vec));
  const int kt = to_int(std::min<int64_t>(sched.k_tile, group_out));
  const bool rows = sched.split == ConvSchedule::Split::kRows;
  const int strip = to_int(std::min<int64_t>(sched.strip, s.out[1]));
  Var xo("xo"), xi("xi"), xv("xv"), ko("ko"), ki("ki"), ys("ys"), g("g"), task("task");
  out.split(x, xo, xi, xt).vectorize(xi, vec);
  if (s.groups > 1) {
    out.split(k, g, k, to_int(group_out));
  }
  out.split(k, ko, ki, kt);
  Var xstrip("xstrip");
  if (rows) {
    out.split(y, ys, y, strip);
    if (s.groups > 1) {
      out.reorder(xi, ki, xo, ko, y, g, ys, z, n);
    } else if (sched.k_inner) {
      out.reorder(xi, ki, ko, xo, y, ys, z, n);
    } else {
      out.reorder(xi, ki, xo, y, ko, ys, z, n);
    }
    if (s.out[1] == 1 && s.groups == 1 && sched.k_inner) {
      // A flattened map: tasks are runs of tiles.
      out.split(xo, xstrip, xo,
                to_int(std::max<int64_t>(1, std::min<int64_t>(sched.strip, s.out[2] / xt))),
                TailStrategy::GuardWithIf);
      out.fuse(xstrip, ys, ys);
    }
    out.fuse(ys, z, ys).fuse(ys, n, task).parallel(task);
  } else {
    if (s.groups > 1) {
      out.reorder(xi, ki, xo, y, z, ko, g, n).fuse(ko, g, task).fuse(task, n, task).parallel(task);
    } else {
      out.reorder(xi, ki, xo, y, z, n, ko).fuse(n, ko, task).parallel(task);
    }
  }
  out.unroll(ki);
  const bool k_closest = rows && sched.k_inner && s.groups == 1;
  acc.compute_at(out, k_closest ? ko : xo);
  acc.vectorize(x, vec).unroll(x).unroll(k);
  acc.update().reorder(x, k, kx, ky, kz, rc).vectorize(x, vec).unroll(x).unroll(k);
  if (s.kernel[2] <= 7) acc.update().unroll(kx);
  if (copied) {
    Var px = padded.args()[0];
    if (rows) {
      padded.compute_at(out, task);
    } else {
      padded.compute_root();
      const std::vector<Var> v = padded.args();
      Var t("t");
      padded.fuse(v[3], v[4], t).parallel(t);
    }
    padded.vectorize(px, 16, TailStrategy::RoundUp);
  }
  return out;
}

}  // namespace

double ConvShape::flops() const {
  double f = 2.0 * static_cast<double>(batch) * static_cast<double>(out_channels) *
             static_cast<double>(in_channels / groups);
  for (int d = 0; d < 3; ++d) f *= static_cast<double>(out[d] * kernel[d]);
  return f;
}

std::string ConvSchedule::to_string() const {
  return std::string(vectors == Vectors::kChannels ? "channels" : "pixels") +
         (split == Split::kRows ? "/rows" : "/kgroups") + " k" + std::to_string(k_tile) + " x" +
         std::to_string(x_tile) + " y" + std::to_string(y_tile) + " strip" + std::to_string(strip) +
         (k_inner ? " k-inner" : " k-outer") +
         (streams > 1 ? " streams" + std::to_string(streams) : "") +
         (ahead ? " ahead" + std::to_string(k_task) : "");
}

Halide::Func build_conv(const ConvProblem& problem, const ConvSchedule& schedule,
                        const Access& input, ImageParam weights, const Epilogue& epilogue) {
  return schedule.vectors == ConvSchedule::Vectors::kPixels
             ? build_pixels(problem, schedule, input, std::move(weights), epilogue)
             : build_channels(problem, schedule, input, std::move(weights), epilogue);
}

std::vector<int64_t> packed_conv_extents(const ConvProblem& p, const ConvSchedule& schedule) {
  const ConvShape& s = p.shape;
  if (schedule.vectors == ConvSchedule::Vectors::kPixels) {
    return {s.out_channels, s.kernel[2], s.kernel[1], s.kernel[0], s.in_channels / s.groups};
  }
  const Blocking b = blocking_of(p);
  return {kChannelBlock, b.ci, s.kernel[2], s.kernel[1], s.kernel[0], b.cb, b.kb};
}

PackedWeights<float> pack_conv_weights(const ConvProblem& p, const ConvSchedule& schedule,
                                       const float* weights) {
  const ConvShape& s = p.shape;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  if (schedule.vectors == ConvSchedule::Vectors::kPixels) {
    PackedWeights<float> packed(s.out_channels * group_in * taps);
    for (int64_t k = 0; k < s.out_channels; ++k) {
      for (int64_t c = 0; c < group_in; ++c) {
        for (int64_t t = 0; t < taps; ++t)
          packed[(c * taps + t) * s.out_channels + k] = weights[(k * group_in + c) * taps + t];
      }
    }
    return packed;
  }
  const Blocking b = blocking_of(p);
  PackedWeights<float> packed(kChannelBlock * b.ci * taps * b.cb * b.kb);
  for (int64_t k = 0; k < s.out_channels; ++k) {
    const int64_t kb = k / kChannelBlock, lane = k % kChannelBlock;
    for (int64_t c = 0; c < group_in; ++c) {
      // Channel within the joined group: small groups sit on the diagonal of a 16 x 16 block.
      const int64_t in = b.diagonal ? (k / group_out * group_in + c) % kChannelBlock : c;
      const int64_t cb = in / b.ci, ci = in % b.ci;
      for (int64_t t = 0; t < taps; ++t) {
        packed[(((kb * b.cb + cb) * taps + t) * b.ci + ci) * kChannelBlock + lane] =
            weights[(k * group_in + c) * taps + t];
      }
    }
  }
  return packed;
}

std::vector<ConvSchedule> conv_schedules(const ConvProblem& p, int threads, bool avx512) {
  const ConvShape& s = p.shape;
  std::vector<ConvSchedule> found;
  const Blocking b = blocking_of(p);
  const int budget = avx512 ? 28 : 6;  // accumulators of 16 lanes
  const int64_t width = s.out[2], height = s.out[1];
  const double weight_bytes =
      4.0 * s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1] * s.kernel[2];
  const bool plain = p.out_layout == ChannelLayout::kPlain &&
                     (p.in_layout == ChannelLayout::kPlain || s.out_channels < 12);

  if (b.ok) {
    // Register tiles ordered by wasted work, then by loads per multiply-add.
    struct Tile {
      int k, x, y;
      double cost;
    };
    std::vector<Tile> tiles;
    for (int k : {1, 2, 3, 4}) {
      if (k > b.kb || (b.groups > 1 && (b.group_out / kChannelBlock) % k != 0 && k > 1)) continue;
      for (int x = 1; x <= std::min<int64_t>(width, budget / k); ++x) {
        for (int y = 1; y <= std::min<int64_t>(height, 4) && x * y * k <= budget; ++y) {
          if (y > 1 && x < width) continue;
          const double waste = static_cast<double>(ceil_div(width, x) * x * ceil_div(height, y) *
                                                   y * ceil_div(b.kb, k) * k) /
                               static_cast<double>(width * height * b.kb);
          const int acc = x * y * k;
          const double loads =
              static_cast<double>(k + x * y) / acc;  // vector loads per multiply-add
          double cost = waste * std::max(1.0, 0.55 + 0.5 * loads) *
                        (acc < 8 ? 8.0 / acc : 1.0 + 0.004 * (28 - acc));
          if (k >= 3) cost *= k == 3 ? 1.05 : 1.2;
          tiles.push_back({k, x, y, cost});
        }
      }
    }
    std::stable_sort(tiles.begin(), tiles.end(),
                     [](const Tile& a, const Tile& c) { return a.cost < c.cost; });
    for (size_t i = 0; i < tiles.size() && i < 2; ++i) {
      const Tile& t = tiles[i];
      ConvSchedule sched;
      sched.k_tile = t.k;
      sched.x_tile = t.x;
      sched.y_tile = t.y;
      const double input_bytes = 4.0 * s.in_channels * s.in[0] * s.in[1] * s.in[2];
      // Rows of a task: several tasks a thread where the map allows, its padded strip within half
      // of L2.
      const int64_t row_tasks = s.batch * s.out[0] * ceil_div(height, t.y);
      int64_t strip = t.y;
      const double row_bytes = 4.0 * s.in_channels * s.in[2] * s.stride[1] * s.kernel[0];
      while (strip * 2 <= height &&
             s.batch * s.out[0] * ceil_div(height, strip * 2) >= 4 * threads &&
             row_bytes * strip * 2 < 5e5)
        strip *= 2;
      for (int64_t candidate = strip; candidate >= std::max<int64_t>(t.y, strip / 2); --candidate) {
        if (height % candidate == 0 && candidate % t.y == 0) {
          strip = candidate;
          break;
        }
      }
      sched.strip = to_int(strip);
      ConvSchedule by_rows = sched, by_channels = sched;
      by_rows.split = ConvSchedule::Split::kRows;
      by_rows.k_inner = weight_bytes < 1.5e6;
      by_channels.split = ConvSchedule::Split::kChannels;
      by_channels.k_inner = false;
      const bool enough_groups = ceil_div(b.kb, t.k) * s.batch >= threads;
      const bool prefer_channels =
          enough_groups && (row_tasks < threads || weight_bytes > input_bytes);
      if (prefer_channels) {
        found.push_back(by_channels);
        if (i == 0 && weight_bytes >= kHeavyWeights) {
          if (s.batch * width * height > t.x * t.y) {
            by_channels.ahead = true;
            by_channels.k_task = to_int(ceil_div(ceil_div(b.kb, t.k), threads));
          } else if (b.cb % 2 == 0) {
            by_channels.streams =
                s.kernel == std::array<int64_t, 3>{1, 1, 1} && b.cb % 4 == 0 ? 4 : 2;
          }
          found.push_back(by_channels);
        }
        if (row_tasks >= threads && i == 0) found.push_back(by_rows);
      } else {
        found.push_back(by_rows);
        if (enough_groups && i == 0) found.push_back(by_channels);
      }
    }
  }
  if (plain) {
    const int64_t group_out = s.out_channels / s.groups;
    ConvSchedule sched;
    sched.vectors = ConvSchedule::Vectors::kPixels;
    const int64_t vectors = std::max<int64_t>(1, width / 16);
    sched.k_tile = to_int(std::min<int64_t>(group_out, avx512 ? 12 : 4));
    if (group_out > sched.k_tile)
      sched.k_tile = to_int(std::max<int64_t>(largest_divisor(group_out, sched.k_tile), 4));
    sched.k_tile = to_int(std::min<int64_t>(sched.k_tile, group_out));
    sched.x_tile = to_int(
        std::max<int64_t>(1, std::min<int64_t>({vectors, (avx512 ? 24 : 6) / sched.k_tile, 8})));
    sched.strip =
        height == 1 ? 4
                    : to_int(largest_divisor(height, std::max<int64_t>(1, height / (2 * threads))));
    sched.split = (height > 1 ? s.batch * s.out[0] * height : width / 64) >= threads
                      ? ConvSchedule::Split::kRows
                      : ConvSchedule::Split::kChannels;
    const bool first = !b.ok || s.out_channels < 12 ||
                       (s.kernel[0] * s.kernel[1] * s.kernel[2] == 1 && s.stride[1] == 1 &&
                        s.stride[2] == 1 && width >= 64);
    if (first) {
      found.insert(found.begin(), sched);
    } else if (width >= 16) {
      found.push_back(sched);
    }
  }
  if (found.size() > 4) found.resize(4);
  return found;
}

}  // namespace collage::native
