#include "cost/timing.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/statistics.h"

namespace collage {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Streams through a buffer larger than the private caches from every core, then reads the inputs
// again.
class CacheState {
 public:
  explicit CacheState(ThreadTeam& team) : team_(team), buffer_(kBytes / sizeof(int64_t), 1) {}
  void make_cold(const TimedKernel& timed) {
    team_.run([&](int index) {
      // Every core reads all of it: each has its own private cache to fill.
      int64_t sum = 0;
      size_t start =
          buffer_.size() / static_cast<size_t>(team_.size()) * static_cast<size_t>(index);
      for (size_t i = 0; i < buffer_.size(); i += 8) sum += buffer_[(start + i) % buffer_.size()];
      sink_ = sum;
    });
    for (size_t i = 0; i < timed.inputs.size(); ++i) {
      const auto* bytes = static_cast<const volatile char*>(timed.inputs[i]);
      for (size_t b = 0; b < std::min(timed.input_bytes[i], kBytes); b += 64) (void)bytes[b];
    }
  }

 private:
  static constexpr size_t kBytes = 8 << 20;
  ThreadTeam& team_;
  std::vector<int64_t> buffer_;
  volatile int64_t sink_ = 0;
};

struct State {
  std::vector<double> samples;
  int batch = 1;
  double spent = 0;
  bool cold = false;
};

// Runs `timed` `count` times and gives the seconds of one run; the team is parked around the whole
// batch when needed.
Result<double> run_batch(const TimedKernel& timed, int count, int warm_ups, ThreadTeam& team) {
  Status status;
  double seconds = 0;
  auto body = [&] {
    for (int i = 0; i < warm_ups && status.ok(); ++i)
      status = timed.kernel->run({timed.inputs.data(), timed.outputs.data(), timed.workspace});
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < count && status.ok(); ++i)
      status = timed.kernel->run({timed.inputs.data(), timed.outputs.data(), timed.workspace});
    seconds = seconds_since(begin) / count;
  };
  if (timed.kernel->thread_use() == ThreadUse::kOwnPool) {
    team.park(body);
  } else {
    body();
  }
  if (!status.ok()) return status;
  return seconds;
}

}  // namespace

Result<std::vector<Measured>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                           const TimingOptions& options) {
  std::vector<State> states(kernels.size());
  CacheState cache(team);
  for (size_t k = 0; k < kernels.size(); ++k) {
    double once = TRY(run_batch(kernels[k], 1, 1, team));
    states[k].cold = kernels[k].kernel->constant_bytes() > options.cold_bytes;
    if (!states[k].cold)
      states[k].batch =
          std::clamp(static_cast<int>(options.batch_seconds / std::max(once, 1e-8)) + 1, 1, 10000);
  }
  std::mt19937 random(1);
  std::vector<size_t> order(kernels.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  for (int round = 0; round < options.max_rounds && !order.empty(); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t k : order) {
      State& state = states[k];
      Clock::time_point begin = Clock::now();
      double seconds;
      if (state.cold) {
        cache.make_cold(kernels[k]);
        seconds = TRY(run_batch(kernels[k], 1, 0, team));
      } else {
        seconds = TRY(run_batch(kernels[k], state.batch, 1, team));
      }
      state.samples.push_back(seconds);
      state.spent += seconds_since(begin);
    }
    std::erase_if(order, [&](size_t k) {
      int count = static_cast<int>(states[k].samples.size());
      return (count >= 3 && states[k].spent > options.max_seconds_per_kernel) ||
             (count >= options.min_rounds && states[k].spent > options.seconds_per_kernel);
    });
  }
  std::vector<Measured> results;
  for (const State& state : states)
    results.push_back({median(state.samples), percentile(state.samples, 0.1),
                       percentile(state.samples, 0.9), static_cast<int>(state.samples.size())});
  return results;
}

}  // namespace collage
