// The peaks of this machine: each the best of some repeats, since what disturbs them only makes
// them slower.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "backend/backend.h"
#include "base/processor.h"
#include "measure/machine_speed.h"
#include "report/roofline.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

constexpr int kArithmeticRounds = 100000;
constexpr int kProbeRounds = 20000;
// Of what goes through memory, which is the machine's: so many times, so far apart.
constexpr int kMoments = 8;
constexpr auto kApart = std::chrono::milliseconds(150);
// What goes through memory: so many bytes of all threads, or four times the shared cache; and of
// one.
constexpr size_t kLeastStream = size_t{192} << 20, kMostStreamOfOne = size_t{256} << 20;
constexpr size_t kInnermost = 16 << 10;          // half of the smallest first level there is
constexpr double kPassedInOneRepeat = 32 << 20;  // bytes a thread, at least

// Of the units that backends know of: the matrix unit's products of bfloat16.
double probed_operations(ThreadTeam& team) {
  double best = 0;
  for (const Backend* backend : all_backends()) {
    const std::optional<PeakProbe> probe = backend->traits().peak_probe;
    if (!probe) continue;
    const double seconds = best_seconds(team, [&](int) { probe->run(kProbeRounds); });
    best = std::max(best, probe->flops_per_round * kProbeRounds * team.size() / seconds);
  }
  return best;
}

double bytes_per_second(ThreadTeam& team, const std::vector<std::shared_ptr<void>>& buffers,
                        size_t bytes) {
  const int passes = std::max(1, static_cast<int>(kPassedInOneRepeat / static_cast<double>(bytes)));
  std::vector<long long> totals(buffers.size() * 8);
  const auto body = [&](auto&& pass) {
    return best_seconds(team, [&](int t) {
      for (int p = 0; p < passes; ++p) pass(static_cast<size_t>(t));
    });
  };
  const double reading =
      body([&](size_t t) { totals[8 * t] ^= read_buffer(buffers[t].get(), bytes); });
  const double writing = body([&](size_t t) { write_buffer(buffers[t].get(), bytes); });
  const double copying = body([&](size_t t) { copy_buffer(buffers[t].get(), bytes); });
  volatile long long keep = std::accumulate(totals.begin(), totals.end(), 0LL);
  (void)keep;
  return static_cast<double>(bytes) * passes * team.size() / std::min({reading, writing, copying});
}

std::vector<MemoryLevel> measure_levels(ThreadTeam& team) {
  const size_t threads = static_cast<size_t>(team.size());
  const size_t stream = std::min(
      std::max(kLeastStream, 4 * shared_cache_bytes()) / threads / 512 * 512, kMostStreamOfOne);
  std::vector<std::shared_ptr<void>> buffers;
  for (size_t t = 0; t < threads; ++t) {
    Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(stream);
    if (!memory) return {};
    buffers.push_back(*memory);
  }
  team.run([&](int t) { std::memset(buffers[static_cast<size_t>(t)].get(), 1, stream); });

  std::vector<MemoryLevel> levels;
  auto add = [&](const char* name, size_t holds, size_t bytes) {
    const double all =
        holds == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(holds);
    levels.push_back({name, all, bytes_per_second(team, buffers, bytes / 512 * 512)});
  };
  const size_t own = private_cache_bytes(), shared = shared_cache_bytes();
  add("L1", threads * first_cache_bytes(), kInnermost);
  add("L2", threads * own, own / 2);
  if (shared / threads > 4 * own) add("L3", shared, std::min(shared / threads / 4, stream));
  if (levels.size() == 2)
    levels.back().bytes = std::max(levels.back().bytes, static_cast<double>(shared));
  add("memory", 0, stream);
  // Others use what cores share, for seconds at a time.
  for (int moment = 1; moment < kMoments; ++moment) {
    std::this_thread::sleep_for(kApart);
    levels.back().bytes_per_second =
        std::max(levels.back().bytes_per_second, bytes_per_second(team, buffers, stream));
  }
  // A level that seems slower than one behind it was disturbed while it was measured.
  for (size_t i = levels.size() - 1; i-- > 0;)
    levels[i].bytes_per_second =
        std::max(levels[i].bytes_per_second, levels[i + 1].bytes_per_second);
  return levels;
}

}  // namespace

MachinePeaks measure_peaks(ThreadTeam& team) {
  MachinePeaks peaks;
  peaks.flops_per_second = operations_per_second(team, float32_loop(), kArithmeticRounds);
  double bfloat16 = probed_operations(team);
  if (const ArithmeticLoop loop = bfloat16_loop(); loop.run != nullptr)
    bfloat16 = std::max(bfloat16, operations_per_second(team, loop, kArithmeticRounds));
  if (bfloat16 > 0) peaks.unit_operations_per_second["bfloat16"] = bfloat16;
  if (const ArithmeticLoop loop = int16_loop(); loop.run != nullptr)
    peaks.unit_operations_per_second["int16"] =
        operations_per_second(team, loop, kArithmeticRounds);
  const ArithmeticLoop bytes = int8_loop();
  if (bytes.run != nullptr && !has_int8_matrix_unit())
    peaks.unit_operations_per_second["int8"] =
        operations_per_second(team, bytes, kArithmeticRounds);
  peaks.levels = measure_levels(team);
  return peaks;
}

}  // namespace collage
