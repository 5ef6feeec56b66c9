#include "backend/native/winograd_template.h"

#include <algorithm>
#include <sstream>
#include <cstdio>
#include <cstdlib>

#include "backend/native/cook_toom.h"
#include "backend/native/padded_input.h"

namespace collage::native {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::ImageParam;
using Halide::RDom;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int to_int(int64_t v) { return static_cast<int>(v); }

/// Depth taps that see the volume from some output slice: `first` and the `count` from there on.
struct DepthTaps {
  int64_t first = 0, count = 0;
  bool all_inside = true;  ///< from every output slice
};

DepthTaps depth_taps(const ConvShape& s) {
  DepthTaps taps;
  for (int64_t tap = 0; tap < s.kernel[0]; ++tap) {
    int64_t inside = 0;
    for (int64_t z = 0; z < s.out[0]; ++z) {
      const int64_t at = z + tap - s.pad[0];
      inside += at >= 0 && at < s.in[0];
    }
    if (inside == 0) continue;
    if (taps.count == 0) taps.first = tap;
    taps.count = tap - taps.first + 1;
    taps.all_inside = taps.all_inside && inside == s.out[0];
  }
  return taps;
}

bool applies(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const bool kernel = s.kernel[1] == 3 && s.kernel[2] == 3 && (s.kernel[0] == 1 || s.kernel[0] == 3);
  const bool unit = s.stride == std::array<int64_t, 3>{1, 1, 1} &&
                    s.dilation == std::array<int64_t, 3>{1, 1, 1};
  return kernel && unit && s.groups == 1 && p.in_layout == ChannelLayout::kBlocked &&
         p.out_layout == ChannelLayout::kBlocked && s.in_channels >= kChannelBlock &&
         s.out_channels >= kChannelBlock && depth_taps(s).count > 0;
}

std::vector<Expr> evaluated(int count, const std::function<Expr(int)>& at) {
  std::vector<Expr> values;
  for (int i = 0; i < count; ++i) values.push_back(at(i));
  return values;
}

}  // namespace

std::string WinogradSchedule::to_string() const {
  return "winograd" + std::to_string(outputs) + (split == Split::kRows ? "/rows" : "/kgroups") +
         " k" + std::to_string(k_tile) + " x" + std::to_string(x_tile) + " y" +
         std::to_string(y_tile) + " strip" + std::to_string(strip);
}

std::vector<WinogradSchedule> winograd_schedules(const ConvProblem& p, int threads, bool avx512) {
  std::vector<WinogradSchedule> found;
  if (!applies(p) || !avx512) return found;
  (void)threads;
  if (const char* text = getenv("COLLAGE_WINO")) {
    std::istringstream in(text);
    std::string one;
    while (std::getline(in, one, ';')) {
      WinogradSchedule w;
      char mode = 'r';
      sscanf(one.c_str(), "%d %c %d %d %d %d", &w.outputs, &mode, &w.k_tile, &w.x_tile, &w.y_tile,
             &w.strip);
      w.split = mode == 'r' ? WinogradSchedule::Split::kRows : WinogradSchedule::Split::kGroups;
      found.push_back(w);
    }
    return found;
  }
  for (int m : {2, 4}) {
    WinogradSchedule w;
    w.outputs = m;
    w.k_tile = 1;
    found.push_back(w);
    w.split = WinogradSchedule::Split::kGroups;
    w.strip = 2;
    found.push_back(w);
  }
  return found;
}

std::vector<int64_t> packed_winograd_extents(const ConvProblem& p, const WinogradSchedule& sched) {
  const ConvShape& s = p.shape;
  const int64_t products = CookToom::of(sched.outputs).products();
  return {kChannelBlock,
          sched.k_tile,
          ceil_div(s.in_channels, kChannelBlock) * kChannelBlock,
          depth_taps(s).count,
          products * products,
          ceil_div(s.out_channels, kChannelBlock * sched.k_tile)};
}

std::vector<float> pack_winograd_weights(const ConvProblem& p, const WinogradSchedule& sched,
                                         const float* weights) {
  const ConvShape& s = p.shape;
  const CookToom& form = CookToom::of(sched.outputs);
  const int n = form.products();
  const DepthTaps taps = depth_taps(s);
  const std::vector<int64_t> extents = packed_winograd_extents(p, sched);
  const int64_t width = extents[0] * extents[1], channels = extents[2], groups = extents[5];
  std::vector<float> packed(static_cast<size_t>(width * channels * taps.count * n * n * groups),
                            0.0f);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < s.out_channels; ++k) {
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t tap = 0; tap < taps.count; ++tap) {
        const float* g = weights + ((k * s.in_channels + c) * s.kernel[0] + taps.first + tap) * 9;
        double half[CookToom::kTaps * 8];  // [tap y][v]
        for (int y = 0; y < 3; ++y) {
          for (int v = 0; v < n; ++v) {
            double sum = 0;
            for (int x = 0; x < 3; ++x) sum += form.weight_entry(v, x) * g[y * 3 + x];
            half[y * n + v] = sum;
          }
        }
        for (int u = 0; u < n; ++u) {
          for (int v = 0; v < n; ++v) {
            double sum = 0;
            for (int y = 0; y < 3; ++y) sum += form.weight_entry(u, y) * half[y * n + v];
            const int64_t at =
                (((k / width * n * n + u * n + v) * taps.count + tap) * channels + c) * width +
                k % width;
            packed[static_cast<size_t>(at)] = static_cast<float>(sum);
          }
        }
      }
    }
  }
  return packed;
}

Func build_winograd(const ConvProblem& p, const WinogradSchedule& sched, const Access& input,
                    ImageParam weights, const Epilogue& epilogue) {
  const ConvShape& s = p.shape;
  const CookToom& form = CookToom::of(sched.outputs);
  const int m = form.outputs(), n_products = form.products();
  const DepthTaps taps = depth_taps(s);
  const int tiles_x = to_int(ceil_div(s.out[2], m)), tiles_y = to_int(ceil_div(s.out[1], m));
  const int strip = std::min(sched.strip, tiles_y);
  const int channel_blocks = to_int(ceil_div(s.in_channels, kChannelBlock));

  // The padded map covers whole tiles; depth is not padded: taps outside are not summed.
  ConvShape covered = s;
  covered.out = {s.in[0], tiles_y * m, tiles_x * m};
  covered.kernel[0] = 1;
  covered.pad[0] = 0;
  Func padded = padded_input(covered, input, ChannelLayout::kBlocked);

  Var l("l"), x("x"), y("y"), z("z"), kb("kb"), cb("cb"), n("n"), u("u"), v("v"), tx("tx"),
      ty("ty"), i("i"), j("j");
  Func half("half"), transformed("transformed"), acc("acc"), products("products"),
      columns("columns"), tile("tile"), out("output");
  half(l, x, u, ty, z, cb, n) =
      Halide::mux(u, form.transform_input(evaluated(n_products, [&](int row) {
        return padded(l, x, ty * m + row, z, cb, n);
      })));
  transformed(l, tx, ty, v, u, z, cb, n) =
      Halide::mux(v, form.transform_input(evaluated(n_products, [&](int column) {
        return half(l, tx * m + column, u, ty, z, cb, n);
      })));

  RDom r(0, kChannelBlock, 0, channel_blocks, 0, to_int(taps.count), "r");
  RVar ci = r[0], rb = r[1], kz = r[2];
  {
    Expr slice = z + kz + to_int(taps.first - s.pad[0]);
    if (!taps.all_inside) r.where(slice >= 0 && slice < to_int(s.in[0]));
    slice = Halide::clamp(slice, 0, to_int(s.in[0] - 1));
    acc(l, kb, tx, ty, v, u, z, n) = 0.0f;
    acc(l, kb, tx, ty, v, u, z, n) +=
        weights(l, kb % sched.k_tile, rb * kChannelBlock + ci, kz, u * n_products + v,
                kb / sched.k_tile) *
        transformed(ci, tx, ty, v, u, slice, rb, n);
  }
  products(l, kb, tx, ty, v, u, z, n) = acc(l, kb, tx, ty, v, u, z, n);
  columns(l, j, u, tx, ty, z, kb, n) =
      Halide::mux(j, form.transform_output(evaluated(n_products, [&](int column) {
        return products(l, kb, tx, ty, column, u, z, n);
      })));
  tile(l, j, i, tx, ty, z, kb, n) =
      Halide::mux(i, form.transform_output(evaluated(n_products, [&](int row) {
        return columns(l, j, row, tx, ty, z, kb, n);
      })));
  {
    Expr channel = Expr(kb) * kChannelBlock + l;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    const Expr clamped = ragged ? Halide::min(channel, to_int(s.out_channels - 1)) : channel;
    Expr value = epilogue(tile(l, x % m, y % m, x / m, y / m, z, kb, n),
                          Coords{{n, clamped, z, y, x}, kb, l});
    if (ragged) {
      value = Halide::select(channel < to_int(s.out_channels), value,
                             Halide::Internal::make_zero(value.type()));
    }
    out(l, x, y, z, kb, n) = value;
  }

  // Loops of the result: tiles, groups of output channels, strips.
  const int blocks = to_int(ceil_div(s.out_channels, kChannelBlock));
  out.bound(l, 0, kChannelBlock)
      .bound(x, 0, to_int(s.out[2]))
      .bound(y, 0, to_int(s.out[1]))
      .bound(z, 0, to_int(s.out[0]))
      .bound(kb, 0, blocks)
      .bound(n, 0, to_int(s.batch));
  Var xi("xi"), yi("yi"), ys("ys"), ki("ki"), kg("kg"), task("task");
  out.split(x, tx, xi, m, TailStrategy::GuardWithIf)
      .split(y, ys, y, strip * m, TailStrategy::GuardWithIf)
      .split(y, ty, yi, m, TailStrategy::GuardWithIf)
      .split(kb, kg, ki, sched.k_tile)
      .reorder({l, xi, yi, tx, ty, ki, z, kg, ys, n})
      .vectorize(l)
      .unroll(xi)
      .unroll(yi);
  const bool rows = sched.split == WinogradSchedule::Split::kRows;
  if (rows) {
    out.fuse(ys, n, task).parallel(task);
  } else {
    out.parallel(kg);
  }
  const Var level = rows ? task : ys;

  for (Func f : {tile, columns}) {
    f.compute_at(out, tx).vectorize(l);
    f.bound_extent(tx, 1).bound_extent(ty, 1).bound_extent(z, 1).bound_extent(kb, 1);
  }
  tile.bound(j, 0, m).bound(i, 0, m).unroll(j).unroll(i);
  columns.bound(j, 0, m).bound(u, 0, n_products).unroll(j).unroll(u);

  Var txo("txo"), txi("txi"), tyo("tyo"), tyi("tyi");
  products.compute_at(out, z)
      .bound(u, 0, n_products)
      .bound(v, 0, n_products)
      .bound_storage(ty, strip)
      .split(tx, txo, txi, std::min(sched.x_tile, tiles_x), TailStrategy::ShiftInwards)
      .split(ty, tyo, tyi, std::min(sched.y_tile, strip), TailStrategy::ShiftInwards)
      .reorder({l, kb, txi, tyi, txo, tyo, v, u, z, n})
      .vectorize(l)
      .unroll(kb)
      .unroll(txi)
      .unroll(tyi);
  acc.compute_at(products, txo).vectorize(l).unroll(kb).unroll(tx).unroll(ty);
  RVar cio("cio"), cii("cii");
  acc.update()
      .split(ci, cio, cii, 4)
      .reorder({l, kb, tx, ty, cii, cio, rb, kz})
      .vectorize(l)
      .unroll(kb)
      .unroll(tx)
      .unroll(ty)
      .unroll(cii);

  Var t("t");
  transformed.compute_at(out, level)
      .bound(u, 0, n_products)
      .bound(v, 0, n_products)
      .bound_storage(ty, strip)
      .reorder({l, v, u, tx, ty, cb, z, n})
      .vectorize(l)
      .unroll(v)
      .unroll(u);
  Var inner = ty;
  if (!rows) {
    transformed.fuse(ty, cb, t).fuse(t, z, t).parallel(t);
    inner = t;
  }
  half.compute_at(transformed, inner).bound(u, 0, n_products);
  half.reorder({l, u, x, ty, z, cb, n}).vectorize(l).unroll(u);
  padded.compute_at(transformed, inner).vectorize(padded.args()[0]);
  return out;
}

}  // namespace collage::native
