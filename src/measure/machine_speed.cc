#include "measure/machine_speed.h"

#include <algorithm>

#include "base/stopwatch.h"
#include "measure/peak_loops.h"
#include "runtime/huge_pages.h"
#include "runtime/thread_team.h"

namespace collage {

MachineSpeed probe_machine(int threads) {
  constexpr int kMoments = 8, kLoopRounds = 20'000;
  constexpr size_t kStream = size_t{32} << 20;  // of each thread
  ThreadTeam team(threads);
  const auto parts = static_cast<size_t>(team.size());
  const Result<std::shared_ptr<void>> buffer = allocate_on_huge_pages(parts * kStream);
  if (!buffer) return {};
  const auto part = [&](int t) {
    return static_cast<char*>(buffer->get()) + static_cast<size_t>(t) * kStream;
  };
  team.run([&](int t) { write_buffer(part(t), kStream); });
  const ArithmeticLoop loop = float32_loop();
  MachineSpeed speed;
  for (int moment = 0; moment < kMoments; ++moment) {
    Stopwatch watch;
    team.run([&](int) {
      const float sum = loop.run(kLoopRounds);
      asm volatile("" : : "x"(sum));
    });
    const double operations = loop.operations_per_round * kLoopRounds * team.size();
    speed.float32 = std::max(speed.float32, operations / watch.restart());
    team.run([&](int t) {
      const long long sum = read_buffer(part(t), kStream);
      asm volatile("" : : "r"(sum));
    });
    speed.memory = std::max(speed.memory, static_cast<double>(parts * kStream) / watch.seconds());
  }
  return speed;
}

}  // namespace collage
