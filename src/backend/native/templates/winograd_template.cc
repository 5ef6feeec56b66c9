#include "backend/native/templates/winograd_template.h"

#include <algorithm>
#include <functional>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/cook_toom.h"
#include "backend/native/templates/padded_input.h"
#include "backend/native/templates/register_tile.h"
#include "base/processor.h"

namespace collage::native {
namespace {

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
  const bool kernel =
      s.kernel[1] == 3 && s.kernel[2] == 3 && (s.kernel[0] == 1 || s.kernel[0] == 3);
  const bool unit =
      s.stride == std::array<int64_t, 3>{1, 1, 1} && s.dilation == std::array<int64_t, 3>{1, 1, 1};
  return kernel && unit && s.groups == 1 && p.in_layout == ChannelLayout::kBlocked &&
         p.out_layout == ChannelLayout::kBlocked && s.in_channels >= kChannelBlock &&
         s.out_channels >= kChannelBlock && depth_taps(s).count > 0;
}

constexpr double kMuchWaste = 1.2;  // computed outputs to real ones
constexpr int64_t kWideRow = 10;    // tiles

int64_t l2_bytes() { return static_cast<int64_t>(private_cache_bytes()); }

/// The register tile for a map of tiles_x by tiles_y tiles: few accumulators cannot hide the
/// latency of a multiply-add.
void choose_register_tile(WinogradSchedule& sched, int64_t tiles_x, int64_t tiles_y, bool avx512) {
  double least = 1e9;
  const int most = most_rows(sched.k_tile, avx512);
  for (int x = 1; x <= std::min<int64_t>(tiles_x, most); ++x) {
    // Rows are joined where they are short.
    const int64_t rows = x < tiles_x || tiles_x > 4 ? 1 : tiles_y;
    for (int y = 1; y <= std::min<int64_t>(rows, most / x); ++y) {
      const int sums = x * y * registers_of(sched.k_tile, avx512);
      if (y > 1 && sums > 16) continue;
      const double waste =
          static_cast<double>(ceil_div(tiles_x, x) * x * ceil_div(tiles_y, y) * y) /
          static_cast<double>(tiles_x * tiles_y);
      const double cost =
          waste * (sums < 12 ? 1.0 + 0.08 * (12 - sums) : 1.0 + 0.004 * (28 - sums));
      if (cost < least) {
        least = cost;
        sched.x_tile = x;
        sched.y_tile = y;
      }
    }
  }
}

std::vector<WinogradSchedule> schedules_of_tile(const ConvShape& s, int m, int threads,
                                                bool avx512) {
  const int64_t tiles_x = ceil_div(s.out[2], m), tiles_y = ceil_div(s.out[1], m);
  const int64_t in_blocks = ceil_div(s.in_channels, kChannelBlock);
  const int64_t out_blocks = ceil_div(s.out_channels, kChannelBlock);
  WinogradSchedule sched;
  sched.outputs = m;
  sched.k_tile = !avx512 ? 1 : out_blocks % 2 == 0 ? 2 : out_blocks % 3 == 0 ? 3 : 1;
  choose_register_tile(sched, tiles_x, tiles_y, avx512);
  const bool light = avx512 && sched.x_tile * sched.y_tile * sched.k_tile <= 16;
  sched.streams = light && in_blocks % 2 == 0 ? 2 : 1;
  const int64_t row_bytes =
      4 * kChannelBlock * in_blocks * s.in[0] * tiles_x * (m + 2) * (m + 2);  // of V
  const int64_t groups = out_blocks / sched.k_tile;
  std::vector<WinogradSchedule> found;
  const int64_t weight_bytes = 4 * kChannelBlock * kChannelBlock * in_blocks * out_blocks *
                               depth_taps(s).count * (m + 2) * (m + 2);
  const auto add = [&](WinogradSchedule schedule) {
    schedule.ahead = weight_bytes / schedule.k_parts > l2_bytes() / 2 &&
                     (tiles_x > schedule.x_tile || schedule.strip > schedule.y_tile);
    if (std::find(found.begin(), found.end(), schedule) == found.end()) found.push_back(schedule);
  };
  // Row by row: where a row has tiles enough to pay for reading the weights once a row.
  if (tiles_x >= kWideRow && tiles_y * s.batch >= 2 * threads) {
    WinogradSchedule rows = sched;
    rows.y_tile = 1;
    add(rows);
    if (weight_bytes <= l2_bytes() / 2) return found;
  }
  // Long strips, that many tiles read each weight, shared by the threads.
  const int64_t longest = std::clamp<int64_t>(l2_bytes() * 9 / 10 / row_bytes, 1, tiles_y);
  const int64_t strips = ceil_div(tiles_y, longest);
  sched.strip = to_int(ceil_div(tiles_y, strips));
  if (sched.strip < tiles_y) sched.y_tile = 1;
  sched.k_parts = strips * s.batch >= 4 * threads ? 1 : to_int(std::min<int64_t>(threads, groups));
  add(sched);
  return found;
}

std::vector<HExpr> evaluated(int count, const std::function<HExpr(int)>& at) {
  std::vector<HExpr> values;
  for (int i = 0; i < count; ++i) values.push_back(at(i));
  return values;
}

}  // namespace

std::string WinogradSchedule::to_string() const {
  return "winograd" + std::to_string(outputs) + " k" + std::to_string(k_tile) + " x" +
         std::to_string(x_tile) + " y" + std::to_string(y_tile) + " strip" + std::to_string(strip) +
         " parts" + std::to_string(k_parts) + " streams" + std::to_string(streams) +
         (ahead ? " ahead" : "");
}

std::vector<WinogradSchedule> winograd_schedules(const ConvProblem& p, int threads, bool avx512) {
  std::vector<WinogradSchedule> found;
  if (!applies(p)) return found;
  const ConvShape& s = p.shape;
  auto computed = [&](int64_t m) { return ceil_div(s.out[1], m) * ceil_div(s.out[2], m) * m * m; };
  const double waste = static_cast<double>(computed(4)) / static_cast<double>(s.out[1] * s.out[2]);
  // Small tiles where large ones compute much that nobody reads: they take 1.8 times as many
  // products an output, but 2.25 times fewer bytes of weights.
  for (const int m : {4, 2}) {
    if (m == 2 && waste < kMuchWaste) continue;
    for (const WinogradSchedule& schedule : schedules_of_tile(s, m, threads, avx512)) {
      found.push_back(schedule);
    }
  }
  return found;
}

std::vector<int64_t> packed_winograd_extents(const ConvProblem& p, const WinogradSchedule& sched) {
  const ConvShape& s = p.shape;
  const int64_t products = CookToom::of(sched.outputs).products();
  return {kChannelBlock,       ceil_div(s.in_channels, kChannelBlock) * kChannelBlock,
          sched.k_tile,        depth_taps(s).count,
          products * products, ceil_div(s.out_channels, kChannelBlock * sched.k_tile)};
}

PackedWeights<float> pack_winograd_weights(const ConvProblem& p, const WinogradSchedule& sched,
                                           const float* weights) {
  const ConvShape& s = p.shape;
  const CookToom& form = CookToom::of(sched.outputs);
  const int n = form.products();
  double matrix[8][CookToom::kTaps];
  for (int a = 0; a < n; ++a) {
    for (int tap = 0; tap < CookToom::kTaps; ++tap) matrix[a][tap] = form.weight_entry(a, tap);
  }
  const DepthTaps taps = depth_taps(s);
  const std::vector<int64_t> extents = packed_winograd_extents(p, sched);
  const int64_t width = extents[0] * extents[2], channels = extents[1], groups = extents[5];
  PackedWeights<float> packed(width * channels * taps.count * n * n * groups);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < s.out_channels; ++k) {
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t tap = 0; tap < taps.count; ++tap) {
        const float* g = weights + ((k * s.in_channels + c) * s.kernel[0] + taps.first + tap) * 9;
        double half[CookToom::kTaps * 8];  // [tap y][v]
        for (int y = 0; y < 3; ++y) {
          for (int v = 0; v < n; ++v) {
            double sum = 0;
            for (int x = 0; x < 3; ++x) sum += matrix[v][x] * g[y * 3 + x];
            half[y * n + v] = sum;
          }
        }
        for (int u = 0; u < n; ++u) {
          for (int v = 0; v < n; ++v) {
            double sum = 0;
            for (int y = 0; y < 3; ++y) sum += matrix[u][y] * half[y * n + v];
            const int64_t at =
                ((((k / width * n * n + u * n + v) * taps.count + tap) * sched.k_tile +
                  k % width / kChannelBlock) *
                     channels +
                 c) *
                    kChannelBlock +
                k % kChannelBlock;
            packed[at] = static_cast<float>(sum);
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
  half(l, x, u, ty, z, cb, n) = Halide::mux(
      u, form.transform_input(
             evaluated(n_products, [&](int row) { return padded(l, x, ty * m + row, z, cb, n); })));
  transformed(l, tx, ty, v, u, z, cb, n) = Halide::mux(
      v, form.transform_input(evaluated(
             n_products, [&](int column) { return half(l, tx * m + column, u, ty, z, cb, n); })));

  RDom r(0, kChannelBlock, 0, channel_blocks, 0, to_int(taps.count), "r");
  RVar ci = r[0], rb = r[1], kz = r[2];
  {
    HExpr slice = z + kz + to_int(taps.first - s.pad[0]);
    if (!taps.all_inside) r.where(slice >= 0 && slice < to_int(s.in[0]));
    slice = Halide::clamp(slice, 0, to_int(s.in[0] - 1));
    acc(l, kb, tx, ty, v, u, z, n) = 0.0f;
    acc(l, kb, tx, ty, v, u, z, n) += weights(l, rb * kChannelBlock + ci, kb % sched.k_tile, kz,
                                              u * n_products + v, kb / sched.k_tile) *
                                      transformed(ci, tx, ty, v, u, slice, rb, n);
  }
  products(l, kb, tx, ty, v, u, z, n) = acc(l, kb, tx, ty, v, u, z, n);
  columns(l, j, u, tx, ty, z, kb, n) = Halide::mux(
      j, form.transform_output(evaluated(
             n_products, [&](int column) { return products(l, kb, tx, ty, column, u, z, n); })));
  tile(l, j, i, tx, ty, z, kb, n) = Halide::mux(
      i, form.transform_output(
             evaluated(n_products, [&](int row) { return columns(l, j, row, tx, ty, z, kb, n); })));
  {
    HExpr channel = HExpr(kb) * kChannelBlock + l;
    const bool ragged = s.out_channels % kChannelBlock != 0;
    const HExpr clamped = ragged ? Halide::min(channel, to_int(s.out_channels - 1)) : channel;
    HExpr value = epilogue(tile(l, x % m, y % m, x / m, y / m, z, kb, n),
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
  Var xi("xi"), yi("yi"), ys("ys"), ki("ki"), kg("kg"), kp("kp"), task("task");
  out.split(x, tx, xi, m, TailStrategy::GuardWithIf)
      .split(y, ys, y, strip * m, TailStrategy::GuardWithIf)
      .split(y, ty, yi, m, TailStrategy::GuardWithIf)
      .split(kb, kg, ki, sched.k_tile)
      .split(kg, kp, kg, to_int(ceil_div(blocks / sched.k_tile, sched.k_parts)),
             TailStrategy::GuardWithIf)
      .reorder({l, xi, yi, tx, ty, ki, z, kg, kp, ys, n})
      .vectorize(l)
      .unroll(xi)
      .unroll(yi);
  out.fuse(kp, ys, task).fuse(task, n, task).parallel(task);

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
  RVar cio("cio"), cii("cii"), rs("rs"), rbi("rbi");
  acc.update()
      .split(ci, cio, cii, 4)
      .split(rb, rs, rbi, channel_blocks / sched.streams)
      .reorder({l, kb, tx, ty, cii, rs, cio, rbi, kz})
      .unroll(rs)
      .vectorize(l)
      .unroll(kb)
      .unroll(tx)
      .unroll(ty)
      .unroll(cii);

  transformed.compute_at(out, task)
      .bound(u, 0, n_products)
      .bound(v, 0, n_products)
      .bound_storage(ty, strip)
      .reorder({l, v, u, tx, ty, cb, z, n})
      .vectorize(l)
      .unroll(v)
      .unroll(u);
  half.compute_at(transformed, ty).bound(u, 0, n_products);
  half.reorder({l, u, x, ty, z, cb, n}).vectorize(l).unroll(u);
  if (!p.input_is_buffer) padded.compute_at(transformed, ty).vectorize(padded.args()[0]);
  return out;
}

}  // namespace collage::native
