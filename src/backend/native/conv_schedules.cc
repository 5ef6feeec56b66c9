#include "backend/native/conv_schedules.h"

#include <algorithm>
#include <array>

#include "backend/native/conv_blocking.h"
#include "backend/native/halide_math.h"
#include "backend/native/register_tile.h"
#include "base/integers.h"

namespace collage::native {
namespace {

/// Weights of so many bytes come from memory: the first schedule stands a second time, reading them
/// ahead, or where they serve one pass only, in several sequences side by side.
constexpr double kHeavyWeights = 1 << 20;

}  // namespace

std::string ConvSchedule::to_string() const {
  return std::string(vectors == Vectors::kChannels ? "channels" : "pixels") +
         (split == Split::kRows ? "/rows" : "/kgroups") + " k" + std::to_string(k_tile) + " x" +
         std::to_string(x_tile) + " y" + std::to_string(y_tile) + " strip" + std::to_string(strip) +
         (k_inner ? " k-inner" : " k-outer") +
         (streams > 1 ? " streams" + std::to_string(streams) : "") +
         (ahead ? " ahead" + std::to_string(k_task) : "");
}

std::vector<ConvSchedule> conv_schedules(const ConvProblem& p, int threads, bool avx512) {
  const ConvShape& s = p.shape;
  std::vector<ConvSchedule> found;
  const ConvBlocking b = conv_blocking(p);
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
      const int most = most_rows(k, avx512);
      for (int x = 1; x <= std::min<int64_t>(width, most); ++x) {
        for (int y = 1; y <= std::min<int64_t>(height, 4) && x * y <= most; ++y) {
          if (y > 1 && x < width) continue;
          const double waste = static_cast<double>(ceil_div(width, x) * x * ceil_div(height, y) *
                                                   y * ceil_div(b.kb, k) * k) /
                               static_cast<double>(width * height * b.kb);
          double cost = waste * tile_cost(k, x * y, avx512);
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
    sched.k_tile = to_int(std::min<int64_t>(group_out, avx512 ? 12 : 6));
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
