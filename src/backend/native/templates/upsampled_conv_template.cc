#include "backend/native/templates/upsampled_conv_template.h"

#include <algorithm>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/padded_input.h"
#include "backend/native/templates/register_tile.h"

namespace collage::native {
namespace {

int64_t blocks(int64_t channels) { return ceil_div(channels, kChannelBlock); }

/// Which taps of the 3 fold into tap `tap` of phase `phase`: first and last.
std::pair<int, int> folded(int phase, int tap) {
  if (phase == 0) return tap == 0 ? std::pair{0, 0} : std::pair{1, 2};
  return tap == 0 ? std::pair{0, 1} : std::pair{2, 2};
}

}  // namespace

std::string UpsampledSchedule::to_string() const {
  return "phases x" + std::to_string(x_tile) + " strip" + std::to_string(strip);
}

bool can_split_phases(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const std::array<int64_t, 3> kernel{1, 3, 3}, one{1, 1, 1}, pad{0, 1, 1};
  return s.groups == 1 && s.kernel == kernel && s.stride == one && s.dilation == one &&
         s.pad == pad && s.in == s.out && s.in[0] == 1 && s.in[1] % 2 == 0 && s.in[2] % 2 == 0 &&
         p.in_layout == ChannelLayout::kBlocked && p.out_layout == ChannelLayout::kBlocked;
}

std::vector<UpsampledSchedule> upsampled_schedules(const ConvProblem& p, int threads, bool avx512) {
  if (!can_split_phases(p)) return {};
  const int64_t height = p.shape.in[1] / 2, width = p.shape.in[2] / 2;
  UpsampledSchedule schedule;
  double cost = 1e9;
  for (int x = 1; x <= std::min<int64_t>(width, avx512 ? 14 : 3); ++x) {
    const double waste = in_tiles(width, x) * (1.0 + 0.01 * (14 - x));
    if (waste <= cost) {
      cost = waste;
      schedule.x_tile = x;
    }
  }
  const double row_bytes = 4.0 * static_cast<double>(p.shape.in_channels * width);
  int64_t strip = 1;
  while (strip * 2 <= height && row_bytes * static_cast<double>(strip * 2 + 2) < 5e5 &&
         p.shape.batch * height / (strip * 2) >= 2 * threads) {
    strip *= 2;
  }
  schedule.strip = to_int(strip);
  return {schedule};
}

std::vector<int64_t> packed_upsampled_extents(const ConvProblem& p) {
  return {kChannelBlock,
          kChannelBlock,
          2,
          2,
          blocks(p.shape.in_channels),
          2,
          2,
          blocks(p.shape.out_channels)};
}

PackedWeights<float> pack_upsampled_weights(const ConvProblem& p, const float* weights) {
  const int64_t in = p.shape.in_channels, out = p.shape.out_channels, in_blocks = blocks(in);
  PackedWeights<float> packed(blocks(out) * 16 * in_blocks * kChannelBlock * kChannelBlock);
  for (int64_t k = 0; k < out; ++k) {
    for (int py = 0; py < 2; ++py) {
      for (int px = 0; px < 2; ++px) {
        for (int64_t c = 0; c < in; ++c) {
          for (int ty = 0; ty < 2; ++ty) {
            for (int tx = 0; tx < 2; ++tx) {
              const auto [y0, y1] = folded(py, ty);
              const auto [x0, x1] = folded(px, tx);
              double sum = 0;
              for (int y = y0; y <= y1; ++y) {
                for (int x = x0; x <= x1; ++x) sum += weights[(k * in + c) * 9 + y * 3 + x];
              }
              const int64_t phase =
                  ((k / kChannelBlock * 2 + py) * 2 + px) * in_blocks + c / kChannelBlock;
              packed[(((phase * 2 + ty) * 2 + tx) * kChannelBlock + c % kChannelBlock) *
                         kChannelBlock +
                     k % kChannelBlock] = static_cast<float>(sum);
            }
          }
        }
      }
    }
  }
  return packed;
}

Func build_upsampled(const ConvProblem& p, const UpsampledSchedule& sched, const Access& input,
                     Halide::ImageParam weights, const Epilogue& epilogue) {
  ConvShape small = p.shape;
  for (int d = 1; d < 3; ++d) small.in[d] = small.out[d] = p.shape.in[d] / 2;
  Func padded = padded_input(small, input, ChannelLayout::kBlocked);
  Func acc("acc"), out("output");
  Var l("l"), px("px"), x("x"), py("py"), y("y"), kb("kb"), n("n");
  RDom r(0, kChannelBlock, 0, 2, 0, 2, 0, to_int(blocks(small.in_channels)), "r");
  RVar ci = r[0], tx = r[1], ty = r[2], cb = r[3];
  acc(l, px, x, py, y, kb, n) = 0.0f;
  acc(l, px, x, py, y, kb, n) +=
      weights(l, ci, tx, ty, cb, px, py, kb) * padded(ci, x + px + tx, y + py + ty, 0, cb, n);
  HExpr channel = HExpr(kb) * kChannelBlock + l;
  const bool ragged = small.out_channels % kChannelBlock != 0;
  const HExpr clamped = ragged ? Halide::min(channel, to_int(small.out_channels - 1)) : channel;
  HExpr value =
      epilogue(acc(l, px, x, py, y, kb, n), Coords{{n, clamped, 0, y * 2 + py, x * 2 + px}, kb, l});
  if (ragged)
    value = Halide::select(channel < to_int(small.out_channels), value,
                           Halide::Internal::make_zero(value.type()));
  out(l, px, x, py, y, kb, n) = value;
  out.bound(l, 0, kChannelBlock).bound(px, 0, 2).bound(py, 0, 2).bound(x, 0, to_int(small.in[2]));

  Var xo("xo"), xi("xi"), ys("ys"), task("task");
  const int strip = to_int(std::min<int64_t>(sched.strip, small.in[1]));
  out.split(x, xo, xi, to_int(std::min<int64_t>(sched.x_tile, small.in[2]))).split(y, ys, y, strip);
  out.reorder({l, px, xi, xo, y, py, kb, ys, n}).fuse(ys, n, task).parallel(task);
  out.vectorize(l).unroll(px).unroll(xi);
  acc.compute_at(out, xo).vectorize(l).unroll(px).unroll(x);
  RVar cio("cio"), cii("cii");
  acc.update()
      .split(ci, cio, cii, 4)
      .reorder({l, x, px, cii, cio, tx, ty, cb})
      .vectorize(l)
      .unroll(px)
      .unroll(x)
      .unroll(cii);
  padded.compute_at(out, task).vectorize(padded.args()[0]);
  return out;
}

}  // namespace collage::native
