#include "backend/native/templates/conv_schedules.h"

#include <algorithm>
#include <array>

#include "backend/native/codegen/halide_math.h"
#include "backend/native/templates/conv_blocking.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"

namespace collage::native {
namespace {

/// Weights of so many bytes come from memory: the first schedule stands a second time, reading them
/// ahead, or where they serve one pass only, in several sequences side by side.
constexpr double kHeavyWeights = 1 << 20;
/// So many stay in a core's own cache beside a tile's input.
constexpr double kCachedWeights = 1 << 18;

/// Channels, columns and rows of a register tile whose vectors are channels.
struct Tile {
  int k, x, y;
  double cost;
};

/// Ordered by wasted work, then by loads per multiply-add.
std::vector<Tile> register_tiles(const ConvShape& s, const ConvBlocking& b, bool avx512) {
  const int64_t width = s.out[2], height = s.out[1];
  std::vector<Tile> tiles;
  for (int k : {1, 2, 3, 4}) {
    if (k > b.kb || (b.groups > 1 && (b.group_out / kChannelBlock) % k != 0 && k > 1)) continue;
    const int most = most_rows(k, avx512);
    for (int x = 1; x <= std::min<int64_t>(width, most); ++x) {
      for (int y = 1; y <= std::min<int64_t>(height, 4) && x * y <= most; ++y) {
        if (y > 1 && x < width) continue;
        const double waste = static_cast<double>(ceil_div(width, x) * x * ceil_div(height, y) * y *
                                                 ceil_div(b.kb, k) * k) /
                             static_cast<double>(width * height * b.kb);
        double cost = waste * tile_cost(k, x * y, avx512);
        if (k >= 3) cost *= k == 3 ? 1.05 : 1.2;
        tiles.push_back({k, x, y, cost});
      }
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const Tile& a, const Tile& c) { return a.cost < c.cost; });
  return tiles;
}

/// Rows of a task: several tasks a thread where the map allows, its padded strip within half of L2.
int rows_of_task(const ConvShape& s, const Tile& t, int threads) {
  const int64_t height = s.out[1];
  const double row_bytes = 4.0 * s.in_channels * s.in[2] * s.stride[1] * s.kernel[0];
  int64_t strip = t.y;
  while (strip * 2 <= height && s.batch * s.out[0] * ceil_div(height, strip * 2) >= 4 * threads &&
         row_bytes * strip * 2 < 5e5)
    strip *= 2;
  for (int64_t rows = strip; rows >= std::max<int64_t>(t.y, strip / 2); --rows)
    if (height % rows == 0 && rows % t.y == 0) return to_int(rows);
  return to_int(strip);
}

/// Tiles of a task where the map is one row: several tasks a thread, equally much for each thread.
/// A last tile that is no whole one computes pixels of the tile before again, which round otherwise
/// at another place of a tile: both are in one task, so that the last one's stay.
int tiles_of_task(const ConvShape& s, const Tile& t, int threads) {
  const int64_t rows = s.batch * s.out[0], tiles = ceil_div(s.out[2], t.x);
  const int64_t most = std::max<int64_t>(1, rows * tiles / (4 * threads));
  int64_t best = tiles, least = INT64_MAX;
  for (int64_t n = 1; n <= tiles && (n <= most || least == INT64_MAX); ++n) {
    const int64_t tasks = ceil_div(tiles, n), last = tiles - (tasks - 1) * n;
    const int64_t of_thread = ceil_div(rows * tasks, threads) * n;
    const bool parted = s.out[2] % t.x != 0 && tasks > 1 && last == 1;
    if (parted || of_thread > least) continue;
    least = of_thread;
    best = n;
  }
  return to_int(best);
}

/// Tasks of rows, of channels, or of both ways, those first that read less of what is larger.
/// Weights that fit a cache are no reason to divide channels: what a thread reads of the map, it
/// has likely written.
void add_channel_schedules(const ConvProblem& p, const ConvBlocking& b, const Tile& t, bool is_best,
                           int threads, std::vector<ConvSchedule>& found) {
  const ConvShape& s = p.shape;
  const double weight_bytes =
      4.0 * s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1] * s.kernel[2];
  const double input_bytes = 4.0 * s.in_channels * s.in[0] * s.in[1] * s.in[2];
  const bool one_row = s.out[1] == 1 && p.out_layout == ChannelLayout::kBlocked;
  const int64_t row_tasks =
      s.batch * s.out[0] * (one_row ? ceil_div(s.out[2], t.x) : ceil_div(s.out[1], t.y));
  ConvSchedule by_rows;
  by_rows.k_tile = t.k;
  by_rows.x_tile = t.x;
  by_rows.y_tile = t.y;
  by_rows.strip = (one_row ? tiles_of_task : rows_of_task)(s, t, threads);
  by_rows.split = ConvSchedule::Split::kRows;
  ConvSchedule by_channels = by_rows;
  by_rows.k_inner = weight_bytes < 1.5e6;
  by_channels.split = ConvSchedule::Split::kChannels;
  by_channels.k_inner = false;
  const bool enough_groups = ceil_div(b.kb, t.k) * s.batch >= threads;
  const bool prefer_channels =
      enough_groups &&
      (row_tasks < threads || weight_bytes > std::max(input_bytes, kCachedWeights));
  if (!prefer_channels) {
    found.push_back(by_rows);
    if (enough_groups && is_best) found.push_back(by_channels);
    return;
  }
  found.push_back(by_channels);
  if (!is_best) return;
  if (weight_bytes >= kHeavyWeights) {
    if (s.batch * s.out[2] * s.out[1] > t.x * t.y) {
      by_channels.ahead = true;
      by_channels.k_task = to_int(ceil_div(ceil_div(b.kb, t.k), threads));
    } else if (b.cb % 2 == 0) {
      by_channels.streams = s.kernel == std::array<int64_t, 3>{1, 1, 1} && b.cb % 4 == 0 ? 4 : 2;
    }
    found.push_back(by_channels);
  }
  if (row_tasks >= threads) found.push_back(by_rows);
}

ConvSchedule pixel_schedule(const ConvShape& s, int threads, bool avx512) {
  const int64_t group_out = s.out_channels / s.groups, width = s.out[2], height = s.out[1];
  ConvSchedule sched;
  sched.vectors = ConvSchedule::Vectors::kPixels;
  const int64_t vectors = std::max<int64_t>(1, width / 16);
  sched.k_tile = to_int(std::min<int64_t>(group_out, avx512 ? 12 : 6));
  if (group_out > sched.k_tile)
    sched.k_tile = to_int(std::max<int64_t>(largest_divisor(group_out, sched.k_tile), 4));
  sched.k_tile = to_int(std::min<int64_t>(sched.k_tile, group_out));
  sched.x_tile = to_int(
      std::max<int64_t>(1, std::min<int64_t>({vectors, (avx512 ? 24 : 6) / sched.k_tile, 8})));
  sched.strip = height == 1
                    ? 4
                    : to_int(largest_divisor(height, std::max<int64_t>(1, height / (2 * threads))));
  sched.split = (height > 1 ? s.batch * s.out[0] * height : width / 64) >= threads
                    ? ConvSchedule::Split::kRows
                    : ConvSchedule::Split::kChannels;
  return sched;
}

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
  const ConvBlocking b = conv_blocking(p);
  std::vector<ConvSchedule> found;
  if (b.ok) {
    const std::vector<Tile> tiles = register_tiles(s, b, avx512);
    for (size_t i = 0; i < tiles.size() && i < 2; ++i)
      add_channel_schedules(p, b, tiles[i], i == 0, threads, found);
  }
  const bool plain = p.out_layout == ChannelLayout::kPlain &&
                     (p.in_layout == ChannelLayout::kPlain || s.out_channels < 12);
  if (plain) {
    const ConvSchedule of_pixels = pixel_schedule(s, threads, avx512);
    const bool first = !b.ok || s.out_channels < 12 ||
                       (s.kernel[0] * s.kernel[1] * s.kernel[2] == 1 && s.stride[1] == 1 &&
                        s.stride[2] == 1 && s.out[2] >= 64);
    if (first) {
      found.insert(found.begin(), of_pixels);
    } else if (s.out[2] >= 16) {
      found.push_back(of_pixels);
    }
  }
  if (found.size() > 4) found.resize(4);
  return found;
}

}  // namespace collage::native
