#include "report/roofline.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/backend.h"
#include "base/stopwatch.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

// Sixteen independent accumulators: latency (4 cycles) times throughput (2 a cycle) and some more.
constexpr int kAccumulators = 16;
constexpr int kFmaRounds = 100000;
constexpr int kProbeRounds = 20000;
constexpr size_t kStreamBytes = size_t{96} << 20;  // a thread
constexpr int kRepeats = 5;

// Each gives its sum, so that the work has a reader.
__attribute__((target("avx512f"))) float multiply_add_512(int rounds) {
  __m512 acc[kAccumulators];
  for (auto& a : acc) a = _mm512_set1_ps(0.5F);
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (int i = 0; i < kAccumulators; ++i) acc[i] = _mm512_fmadd_ps(acc[i], x, y);
  __m512 sum = acc[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_ps(sum, acc[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) float multiply_add_256(int rounds) {
  __m256 acc[kAccumulators - 4];
  for (auto& a : acc) a = _mm256_set1_ps(0.5F);
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  __m256 sum = acc[0];
  for (int i = 1; i < kAccumulators - 4; ++i) sum = _mm256_add_ps(sum, acc[i]);
  return _mm256_cvtss_f32(sum);
}

float multiply_add_scalar(int rounds) {
  float acc[8] = {};
  for (int r = 0; r < rounds; ++r)
    for (float& a : acc) a = a * 0.999F + 0.001F;
  float sum = 0;
  for (float a : acc) sum += a;
  return sum;
}

struct ComputeLoop {
  float (*run)(int rounds);
  double flops_per_round;
};

ComputeLoop widest_loop() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, kAccumulators * 16 * 2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_256, (kAccumulators - 4) * 8 * 2};
  return {multiply_add_scalar, 8 * 2};
}

// The shortest of some repeats of `body` on every thread of the team, in seconds.
template <typename Body>
double best_seconds(ThreadTeam& team, Body&& body) {
  double best = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Stopwatch watch;
    team.run(body);
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace

MachinePeaks measure_peaks(ThreadTeam& team, std::span<const std::string> targets) {
  MachinePeaks peaks;
  auto threads = static_cast<size_t>(team.size());
  std::vector<float> sums(threads * 16);
  ComputeLoop loop = widest_loop();
  double seconds = best_seconds(team, [&](int t) { sums[16 * t] += loop.run(kFmaRounds); });
  peaks.flops_per_second = loop.flops_per_round * kFmaRounds * team.size() / seconds;
  for (const std::string& text : targets) {
    const Result<Target> target = Target::parse(text);
    const Backend* backend = target ? find_backend(target->kind) : nullptr;
    const std::optional<PeakProbe> probe =
        backend != nullptr ? backend->peak_probe(*target) : std::nullopt;
    if (!probe) continue;
    seconds = best_seconds(team, [&](int) { probe->run(kProbeRounds); });
    peaks.target_flops_per_second[text] =
        probe->flops_per_round * kProbeRounds * team.size() / seconds;
  }

  std::vector<std::shared_ptr<void>> buffers;
  for (size_t t = 0; t < threads; ++t) {
    Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(kStreamBytes);
    if (!memory) return peaks;
    buffers.push_back(*memory);
  }
  team.run([&](int t) { std::memset(buffers[t].get(), 1, kStreamBytes); });
  std::vector<int64_t> totals(threads * 8);
  seconds = best_seconds(team, [&](int t) {
    // Eight chains, so that adding does not wait for the sum before.
    int64_t chain[8] = {};
    const auto* buffer = static_cast<const int64_t*>(buffers[t].get());
    for (size_t i = 0; i < kStreamBytes / sizeof(int64_t); i += 8)
      for (size_t j = 0; j < 8; ++j) chain[j] += buffer[i + j];
    for (int64_t c : chain) totals[8 * t] += c;
  });
  peaks.bytes_per_second = static_cast<double>(kStreamBytes) * team.size() / seconds;
  volatile double keep = 0;  // the loops must not be optimised away
  for (float s : sums) keep = keep + s;
  for (int64_t s : totals) keep = keep + static_cast<double>(s);
  return peaks;
}

double roofline_seconds(const MachinePeaks& peaks, const std::string& target, double flops,
                        double bytes) {
  const auto own = peaks.target_flops_per_second.find(target);
  const double flops_per_second =
      own != peaks.target_flops_per_second.end() ? own->second : peaks.flops_per_second;
  double moving = peaks.bytes_per_second > 0 ? bytes / peaks.bytes_per_second : 0;
  return std::max(flops / flops_per_second, moving);
}

}  // namespace collage
