#include "measure/machine_speed.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/stopwatch.h"
#include "runtime/huge_pages.h"

namespace collage {

double best_seconds(ThreadTeam& team, const std::function<void(int)>& body) {
  constexpr int kRepeats = 7;
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Stopwatch watch;
    team.run(body);
    best = std::min(best, watch.seconds());
  }
  return best;
}

double operations_per_second(ThreadTeam& team, const ArithmeticLoop& loop, int rounds) {
  std::vector<float> sums(static_cast<size_t>(team.size()) * 16);
  const double seconds =
      best_seconds(team, [&](int t) { sums[static_cast<size_t>(t) * 16] += loop.run(rounds); });
  volatile float keep = std::accumulate(sums.begin(), sums.end(), 0.0F);
  (void)keep;
  return loop.operations_per_round * rounds * team.size() / seconds;
}

MachineSpeed probe_machine(int threads) {
  constexpr int kRounds = 20'000;
  constexpr size_t kStream = size_t{32} << 20;  // of each thread
  ThreadTeam team(threads);
  const auto parts = static_cast<size_t>(team.size());
  const Result<std::shared_ptr<void>> buffer = allocate_on_huge_pages(parts * kStream);
  if (!buffer) return {};
  const auto part = [&](int t) {
    return static_cast<char*>(buffer->get()) + static_cast<size_t>(t) * kStream;
  };
  team.run([&](int t) { write_buffer(part(t), kStream); });
  const double reading = best_seconds(team, [&](int t) {
    const long long sum = read_buffer(part(t), kStream);
    asm volatile("" : : "r"(sum));
  });
  return {operations_per_second(team, float32_loop(), kRounds),
          static_cast<double>(parts * kStream) / reading};
}

}  // namespace collage
