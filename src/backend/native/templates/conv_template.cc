#include "backend/native/templates/conv_template.h"

#include <algorithm>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/conv_blocking.h"
#include "backend/native/templates/padded_input.h"

namespace collage::native {
namespace {

Halide::Func build_channels(const ConvProblem& p, const ConvSchedule& sched, const Access& input,
                            ImageParam weights, const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const ConvBlocking b = conv_blocking(p);
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
    HExpr ix = x * to_int(s.stride[2]) + kx * to_int(s.dilation[2]);
    HExpr iy = y * to_int(s.stride[1]) + ky * to_int(s.dilation[1]);
    HExpr iz = z * to_int(s.stride[0]) + kz * to_int(s.dilation[0]);
    HExpr first = 0;  // first input block (or channel) of the group of kb
    if (b.groups > 1) {
      HExpr group = kb / to_int(b.group_out / kChannelBlock);
      first = group * to_int(in_blocked ? b.group_in / kChannelBlock : b.group_in);
    }
    HExpr value;
    if (in_blocked) {
      const int parts = to_int(kChannelBlock / b.ci);
      HExpr block = first + cb / parts, lane = cb % parts * to_int(b.ci) + ci;
      value = copied ? padded(lane, ix, iy, iz, block, n)
                     : input(Coords{{n, block * kChannelBlock + lane, iz, iy, ix}, block, lane});
    } else {
      HExpr c = first + cb * to_int(b.ci) + ci;
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
    HExpr channel = HExpr(kb) * kChannelBlock + l;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    if (ragged) channel = Halide::min(channel, to_int(s.out_channels - 1));
    HExpr value = epilogue(acc(l, x, y, z, kb, n), Coords{{n, channel, z, y, x}, kb, l});
    if (ragged && out_blocked) {
      value = Halide::select(HExpr(kb) * kChannelBlock + l < to_int(s.out_channels), value,
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
  Var k("k"), task("task"), ys("ys"), yo("yo"), xs("xs"), xo("xo"), xi("xi"), yi("yi"), ko("ko"),
      ki("ki");
  if (!out_blocked) {
    out = Func("output");
    out(x, y, z, k, n) = core(k % kChannelBlock, x, y, z, k / kChannelBlock, n);
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
  const bool by_tiles = rows && outer && s.out[1] == 1;
  if (by_tiles) {
    const int tiles = to_int(ceil_div(s.out[2], xt));
    core.split(xo, xs, xo, std::min(sched.strip, tiles), TailStrategy::GuardWithIf);
  }
  if (rows) {
    std::vector<Halide::VarOrRVar> order{l, ki, xi, yi};
    if (sched.k_inner) {
      order.insert(order.end(), {ko, xo, yo});
    } else {
      order.insert(order.end(), {xo, yo, ko});
    }
    if (by_tiles) order.push_back(xs);
    if (outer) order.push_back(ys);
    order.insert(order.end(), {z, n});
    core.reorder(order);
    if (by_tiles) core.fuse(xs, ys, ys);
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
    HExpr ix = x * to_int(s.stride[2]) + kx * to_int(s.dilation[2]);
    HExpr iy = y * to_int(s.stride[1]) + ky * to_int(s.dilation[1]);
    HExpr iz = z * to_int(s.stride[0]) + kz * to_int(s.dilation[0]);
    HExpr c = s.groups == 1 ? HExpr(rc) : (k / to_int(group_out)) * to_int(group_in) + rc;
    HExpr value = copied ? padded(ix, iy, iz, c, n) : input(Coords{{n, c, iz, iy, ix}, {}, {}});
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
  Var xo("xo"), xi("xi"), ko("ko"), ki("ki"), ys("ys"), g("g"), task("task");
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

Halide::Func build_conv(const ConvProblem& problem, const ConvSchedule& schedule,
                        const Access& input, ImageParam weights, const Epilogue& epilogue) {
  return schedule.vectors == ConvSchedule::Vectors::kPixels
             ? build_pixels(problem, schedule, input, std::move(weights), epilogue)
             : build_channels(problem, schedule, input, std::move(weights), epilogue);
}

}  // namespace collage::native
