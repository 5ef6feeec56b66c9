#include "cost/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "base/statistics.h"

namespace collage {

namespace {

using Clock = std::chrono::steady_clock;

// Longer than idle libgomp and TBB workers spin.
constexpr auto kSettle = std::chrono::milliseconds(15);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Streams through a buffer larger than the private caches on every core, then reads the inputs
// again. It uses threads of its own: inside a parked region of the team there is no team.
class CacheState {
 public:
  explicit CacheState(int threads) : threads_(threads), buffer_(kBytes / sizeof(int64_t), 1) {}
  void make_cold(const TimedKernel& timed) {
    std::vector<std::thread> others;
    for (int i = 1; i < threads_; ++i) others.emplace_back([this] { stream(); });
    stream();
    for (std::thread& other : others) other.join();
    for (size_t i = 0; i < timed.inputs.size(); ++i) {
      const auto* bytes = static_cast<const volatile char*>(timed.inputs[i]);
      for (size_t b = 0; b < std::min(timed.input_bytes[i], kBytes); b += 64) (void)bytes[b];
    }
  }

 private:
  void stream() {
    int64_t sum = 0;
    for (size_t i = 0; i < buffer_.size(); i += 8) sum += buffer_[i];
    sink_.fetch_add(sum, std::memory_order_relaxed);
  }
  static constexpr size_t kBytes = 8 << 20;
  int threads_;
  std::vector<int64_t> buffer_;
  std::atomic<int64_t> sink_{0};
};

struct State {
  std::vector<double> samples;
  int batch = 1;
  double spent = 0;
  bool cold = false;
};

// Runs `timed` `count` times and gives the seconds of one run.
Result<double> run_batch(const TimedKernel& timed, int count, int warm_ups) {
  const KernelArgs args{timed.inputs.data(), timed.outputs.data(), timed.workspace};
  for (int i = 0; i < warm_ups; ++i) TRY(timed.kernel->run(args));
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < count; ++i) TRY(timed.kernel->run(args));
  return seconds_since(begin) / count;
}

// All rounds of the kernels numbered in `order`, which use one kind of threads.
Status time_group(std::vector<TimedKernel>& kernels, std::vector<size_t> order, CacheState& cache,
                  const TimingOptions& options, std::vector<State>& states) {
  for (size_t k : order) {
    double once = TRY(run_batch(kernels[k], 1, 2));
    states[k].cold = kernels[k].kernel->constant_bytes() > options.cold_bytes;
    if (!states[k].cold)
      states[k].batch =
          std::clamp(static_cast<int>(options.batch_seconds / std::max(once, 1e-8)) + 1, 1, 10000);
  }
  std::mt19937 random(1);
  for (int round = 0; round < options.max_rounds && !order.empty(); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t k : order) {
      State& state = states[k];
      Clock::time_point begin = Clock::now();
      if (state.cold) cache.make_cold(kernels[k]);
      state.samples.push_back(TRY(run_batch(kernels[k], state.batch, state.cold ? 0 : 1)));
      state.spent += seconds_since(begin);
    }
    std::erase_if(order, [&](size_t k) {
      int count = static_cast<int>(states[k].samples.size());
      return (count >= 3 && states[k].spent > options.max_seconds_per_kernel) ||
             (count >= options.min_rounds && states[k].spent > options.seconds_per_kernel);
    });
  }
  return {};
}

}  // namespace

Result<std::vector<Measured>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                           const TimingOptions& options) {
  std::vector<State> states(kernels.size());
  CacheState cache(team.size());
  // Idle threads of one pool spin for milliseconds and would steal the cores from the other:
  // kernels of the team are timed first, then, after a pause and with the team parked throughout,
  // those that bring their own threads.
  std::vector<size_t> of_team, of_own_pool;
  for (size_t k = 0; k < kernels.size(); ++k)
    (kernels[k].kernel->thread_use() == ThreadUse::kOwnPool ? of_own_pool : of_team).push_back(k);
  std::this_thread::sleep_for(kSettle);
  TRY(time_group(kernels, of_team, cache, options, states));
  if (!of_own_pool.empty()) {
    std::this_thread::sleep_for(kSettle);
    Status status;
    team.park([&] { status = time_group(kernels, of_own_pool, cache, options, states); });
    TRY(status);
  }
  std::vector<Measured> results;
  for (const State& state : states)
    results.push_back({median(state.samples), percentile(state.samples, 0.1),
                       percentile(state.samples, 0.9), static_cast<int>(state.samples.size())});
  return results;
}

}  // namespace collage
