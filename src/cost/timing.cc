#include "cost/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
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

// Streams through a buffer larger than the private caches on every core, then writes the inputs
// again, each core its part.
class CacheState {
 public:
  // Runs a function of a thread's number on every core. It must not leave threads behind that
  // compete with those of the kernel: where a spinning worker of the team is pushed off its core,
  // the next kernel waits for it until the scheduler moves it back, 4 to 8 ms later.
  using Everywhere = std::function<void(const std::function<void(int)>&)>;
  CacheState(int threads, Everywhere everywhere)
      : threads_(threads),
        everywhere_(std::move(everywhere)),
        buffer_(kBytes / sizeof(int64_t), 1) {}
  void make_cold(const TimedKernel& timed) {
    everywhere_([&](int thread) {
      stream();
      for (size_t i = 0; i < timed.inputs.size(); ++i)
        rewrite(timed.inputs[i], timed.input_bytes[i], thread);
    });
  }

 private:
  void stream() {
    int64_t sum = 0;
    for (size_t i = 0; i < buffer_.size(); i += 8) sum += buffer_[i];
    sink_.fetch_add(sum, std::memory_order_relaxed);
  }
  void rewrite(void* data, size_t bytes, int thread) const {
    constexpr size_t kLine = 64;
    size_t part = (bytes / threads_ + kLine - 1) / kLine * kLine;
    size_t end = std::min(bytes, part * (thread + 1));
    auto* values = static_cast<volatile char*>(data);
    for (size_t b = part * thread; b < end; b += kLine) values[b] = values[b];
  }
  static constexpr size_t kBytes = 8 << 20;
  int threads_;
  Everywhere everywhere_;
  std::vector<int64_t> buffer_;
  std::atomic<int64_t> sink_{0};
};

struct State {
  std::vector<double> samples;
  int batch = 1;
  double spent = 0;
  Status failure;
};

class Timer {
 public:
  Timer(std::vector<TimedKernel>& kernels, const TimingOptions& options)
      : kernels_(kernels), options_(options), states_(kernels.size()) {}

  // All rounds of the kernels numbered in `order`, which use one kind of threads.
  void time_group(std::vector<size_t> order, CacheState& cache) {
    for (size_t k : order) warm_up(k);
    std::mt19937 random(1);
    for (int round = 0; round < options_.max_rounds && !order.empty(); ++round) {
      std::erase_if(order, [&](size_t k) { return !states_[k].failure.ok(); });
      std::shuffle(order.begin(), order.end(), random);
      for (size_t k : order) sample(k, cache);
      std::erase_if(order, [&](size_t k) {
        int count = static_cast<int>(states_[k].samples.size());
        return (count >= 3 && states_[k].spent > options_.max_seconds_per_kernel) ||
               (count >= options_.min_rounds && states_[k].spent > options_.seconds_per_kernel);
      });
    }
  }

  std::vector<Result<Measured>> results() const {
    std::vector<Result<Measured>> results;
    for (const State& state : states_) {
      if (!state.failure.ok()) {
        results.push_back(state.failure);
      } else {
        results.push_back(Measured{median(state.samples), percentile(state.samples, 0.1),
                                   percentile(state.samples, 0.9),
                                   static_cast<int>(state.samples.size())});
      }
    }
    return results;
  }

 private:
  // Runs kernel k `count` times and gives the seconds of one run; 0 after a failure.
  double run_batch(size_t k, int count, int warm_ups) {
    const TimedKernel& timed = kernels_[k];
    const KernelArgs args{timed.inputs.data(), timed.outputs.data(), timed.workspace};
    Status& failure = states_[k].failure;
    if (options_.running != nullptr) options_.running->store(static_cast<int32_t>(k));
    if (options_.beats != nullptr) options_.beats->fetch_add(1);
    for (int i = 0; i < warm_ups && failure.ok(); ++i) failure = timed.kernel->run(args);
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < count && failure.ok(); ++i) failure = timed.kernel->run(args);
    return seconds_since(begin) / count;
  }

  void warm_up(size_t k) {
    State& state = states_[k];
    double once = run_batch(k, 1, 2);
    if (!options_.cold)
      state.batch =
          std::clamp(static_cast<int>(options_.batch_seconds / std::max(once, 1e-8)) + 1, 1, 10000);
  }

  void sample(size_t k, CacheState& cache) {
    State& state = states_[k];
    Clock::time_point begin = Clock::now();
    if (options_.cold) cache.make_cold(kernels_[k]);
    state.samples.push_back(run_batch(k, state.batch, options_.cold ? 0 : 1));
    state.spent += seconds_since(begin);
  }

  std::vector<TimedKernel>& kernels_;
  const TimingOptions& options_;
  std::vector<State> states_;
};

}  // namespace

std::vector<Result<Measured>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                           const TimingOptions& options) {
  // Idle threads of one pool spin for milliseconds and would steal the cores from the other:
  // kernels of the team are timed first, then, after a pause and with the team parked throughout,
  // those that bring their own threads.
  std::vector<size_t> of_team, of_own_pool;
  for (size_t k = 0; k < kernels.size(); ++k)
    (kernels[k].kernel->thread_use() == ThreadUse::kOwnPool ? of_own_pool : of_team).push_back(k);
  Timer timer(kernels, options);
  std::this_thread::sleep_for(kSettle);
  CacheState by_team(team.size(), [&](const std::function<void(int)>& body) { team.run(body); });
  timer.time_group(of_team, by_team);
  if (!of_own_pool.empty()) {
    std::this_thread::sleep_for(kSettle);
    // Inside a parked region of the team there is no team.
    CacheState by_threads(team.size(), [&](const std::function<void(int)>& body) {
      std::vector<std::thread> others;
      for (int i = 1; i < team.size(); ++i) others.emplace_back(body, i);
      body(0);
      for (std::thread& other : others) other.join();
    });
    team.park([&] { timer.time_group(of_own_pool, by_threads); });
  }
  return timer.results();
}

}  // namespace collage
