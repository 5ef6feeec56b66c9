#include "measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "measure/eviction.h"

namespace collage {

namespace {

// Longer than idle workers of either pool spin.
constexpr auto kSettle = std::chrono::milliseconds(15);

struct State {
  explicit State(const TimedKernel& timed) : arguments(timed) {}
  TimedArguments arguments;
  std::vector<double> samples;
  int batch = 1;
  double spent = 0;
  Interval interval;  // of the median
  Status failure;
};

class Timer {
 public:
  Timer(std::vector<TimedKernel>& kernels, const TimingOptions& options, NoiseGate& gate)
      : kernels_(kernels),
        options_(options),
        gate_(gate),
        states_(kernels.begin(), kernels.end()) {}

  // All rounds of the kernels numbered in `order`, which use one kind of threads.
  Status time_group(std::vector<size_t> order, Evictor& evictor) {
    for (size_t k : order) warm_up(k);
    std::mt19937 random(1);
    std::shuffle(order.begin(), order.end(), random);
    const bool in_turns = options_.cache == CacheState::kStreaming;
    for (int round = 0; round < options_.max_rounds && !order.empty(); ++round) {
      std::erase_if(order, [&](size_t k) { return !states_[k].failure.ok(); });
      if (!in_turns) std::shuffle(order.begin(), order.end(), random);
      TRY(evictor.begin_round(kernels_, order));
      for (size_t k : order) {
        sample(k, evictor);
        states_[k].interval = median_interval(states_[k].samples);
        if (round + 1 >= options_.hopeless_rounds) {
          double& best = best_high_.try_emplace(kernels_[k].rivals, kInfinity).first->second;
          best = std::min(best, states_[k].interval.high);
        }
      }
      std::erase_if(order, [&](size_t k) { return is_known(k); });
    }
    return {};
  }

  std::vector<Result<Block>> results() const {
    std::vector<Result<Block>> results;
    for (const State& state : states_) {
      if (!state.failure.ok()) {
        results.push_back(state.failure);
      } else {
        results.push_back(block_of(state.samples));
      }
    }
    return results;
  }

 private:
  // Runs kernel k `count` times and gives the seconds of one run; 0 after a failure.
  double run_batch(size_t k, int count, int warm_ups) {
    const TimedKernel& timed = kernels_[k];
    State& state = states_[k];
    const KernelArgs args = state.arguments.args();
    Status& failure = state.failure;
    if (options_.running != nullptr) options_.running->store(static_cast<int32_t>(k));
    if (options_.beats != nullptr) options_.beats->fetch_add(1);
    for (int i = 0; i < warm_ups && failure.ok(); ++i) failure = timed.kernel->run(args);
    if (failure.ok()) failure = timed.kernel->finish();
    const Stopwatch watch;
    for (int i = 0; i < count && failure.ok(); ++i) failure = timed.kernel->run(args);
    if (failure.ok()) failure = timed.kernel->finish();
    return watch.seconds() / count;
  }

  bool is_known(size_t k) const {
    const State& state = states_[k];
    const auto rival = best_high_.find(kernels_[k].rivals);
    int count = static_cast<int>(state.samples.size());
    if (count >= 3 && state.spent > options_.max_seconds_per_kernel) return true;
    if (count >= options_.hopeless_rounds && rival != best_high_.end() &&
        state.interval.low > options_.hopeless * rival->second)
      return true;
    if (count >= options_.least_rounds && state.spent > options_.seconds_per_kernel) return true;
    double half_width = (state.interval.high - state.interval.low) / 2;
    return count >= options_.min_rounds && half_width <= options_.precision * median(state.samples);
  }

  void warm_up(size_t k) {
    State& state = states_[k];
    double once = run_batch(k, 1, 2);
    if (options_.cache == CacheState::kWarm)
      state.batch =
          std::clamp(static_cast<int>(options_.batch_seconds / std::max(once, 1e-8)) + 1, 1, 10000);
  }

  void sample(size_t k, Evictor& evictor) {
    State& state = states_[k];
    const bool warm = options_.cache == CacheState::kWarm;
    const Stopwatch watch;
    const double waited = prepare_quietly(kernels_[k], evictor, gate_, [&] {
      if (options_.beats != nullptr) options_.beats->fetch_add(1);
    });
    state.samples.push_back(run_batch(k, state.batch, warm ? 1 : 0));
    const double seconds = watch.seconds() - waited;
    state.spent += seconds;
    gate_.timed(seconds);
  }

  std::vector<TimedKernel>& kernels_;
  const TimingOptions& options_;
  NoiseGate& gate_;
  std::vector<State> states_;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::map<size_t, double> best_high_;  // of the medians' intervals, the best of all rivals
};

}  // namespace

TimingOptions TimingOptions::of(Effort effort) {
  TimingOptions options;
  if (effort == Effort::kFast) {
    options.min_rounds = options.least_rounds = 5;
    options.max_rounds = 15;
    options.precision = 0.03;
    options.seconds_per_kernel = 0.02;
    options.max_seconds_per_kernel = 0.5;
  } else if (effort == Effort::kMax) {
    options.min_rounds = 80;
    options.least_rounds = 20;
    options.max_rounds = 300;
    options.hopeless = 2;
    options.hopeless_rounds = 10;
    options.precision = 0.005;
    options.seconds_per_kernel = 0.5;
    options.max_seconds_per_kernel = 5;
  }
  return options;
}

Result<std::vector<Result<Block>>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                                const TimingOptions& options, NoiseGate& gate) {
  const TeamHold hold(team.size());
  TRY(hold.status());
  // Idle threads of one pool spin for milliseconds and would steal the cores from the other:
  // kernels of the team are timed first, then, after a pause and with the team parked throughout,
  // those that bring their own threads.
  std::vector<size_t> of_team, of_own_pool;
  for (size_t k = 0; k < kernels.size(); ++k)
    (kernels[k].kernel->thread_use() == ThreadUse::kOwnPool ? of_own_pool : of_team).push_back(k);
  Timer timer(kernels, options, gate);
  if (!of_team.empty()) {
    Evictor evictor(options.cache, own_caches(), kRestOfModel, team.size(),
                    [&](const std::function<void(int)>& body) { team.run(body); });
    std::this_thread::sleep_for(kSettle);
    TRY(timer.time_group(of_team, evictor));
  }
  if (!of_own_pool.empty()) {
    // Inside a parked region of the team there is no team.
    Evictor evictor(
        options.cache, own_caches(), kRestOfModel, team.size(),
        [&](const std::function<void(int)>& body) { run_on_new_threads(team.size(), body); });
    std::this_thread::sleep_for(kSettle);
    Status status;
    team.park([&] { status = timer.time_group(of_own_pool, evictor); });
    TRY(status);
  }
  return timer.results();
}

}  // namespace collage
