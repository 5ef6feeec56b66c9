#include "cost/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "base/cache_sizes.h"
#include "base/integers.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "machine/quiet.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

// Longer than idle libgomp and TBB workers spin.
constexpr auto kSettle = std::chrono::milliseconds(15);
// Before it is looked again whether the machine is quiet.
constexpr auto kPause = std::chrono::milliseconds(1);

// What an Evictor reads, a buffer for each thread. They live as long as the process: filling them
// again for every task takes longer than the rounds of many a kernel.
class EvictionBuffers {
 public:
  // Buffers of `bytes` at least, filled.
  Status reserve(int threads, size_t bytes) {
    if (buffers_.size() >= static_cast<size_t>(threads) && bytes_ >= bytes) return {};
    buffers_.clear();
    bytes_ = 0;
    for (int t = 0; t < threads; ++t) {
      buffers_.push_back(TRY(allocate_on_huge_pages(bytes)));
      std::memset(buffers_.back().get(), 1, bytes);
    }
    bytes_ = bytes;
    return {};
  }
  const int64_t* of_thread(int thread) const {
    return static_cast<const int64_t*>(buffers_[thread].get());
  }

 private:
  size_t bytes_ = 0;
  std::vector<std::shared_ptr<void>> buffers_;
};

// What a thread reads to push everything out of its core's own cache: more than that holds, but
// little of a shared one, where a model keeps what its kernels hand on.
size_t own_caches() { return std::clamp<size_t>(4 * private_cache_bytes(), 2 << 20, 8 << 20); }
// The same amid other kernels of a model, which push out their part: as often as it holds.
constexpr size_t kBetweenOthers = 2;

// What passes through the shared caches between two runs of a kernel where a model's constants fit
// them: the rest of the model.
constexpr size_t kRestOfModel = 16 << 20;

// Puts the caches into the state that a kernel meets in a model. Where constants stream, kernels
// take turns, and between two turns of one as many bytes pass through the shared caches as push its
// constants out: those of its rivals and, for the rest, a stream of the threads before each turn.
// Where they do not, `passing` bytes pass before each.
class Evictor {
 public:
  // Runs a function of a thread's number on every core. It must not leave threads behind that
  // compete with those of the kernel: where a spinning worker of the team is pushed off its core,
  // the next kernel waits for it until the scheduler moves it back, 4 to 8 ms later.
  using Everywhere = std::function<void(const std::function<void(int)>&)>;
  Evictor(CacheState state, size_t own, size_t passing, int threads, Everywhere everywhere)
      : private_(own),
        state_(state),
        passing_(passing),
        threads_(threads),
        everywhere_(std::move(everywhere)) {}

  // Those numbered in `turns` run in turns from now on.
  Status begin_round(const std::vector<TimedKernel>& kernels, const std::vector<size_t>& turns) {
    if (state_ == CacheState::kWarm) return {};
    size_t streaming = 0, own = 0;
    for (size_t k : turns) {
      if (!streams(kernels[k])) continue;
      ++streaming;
      own += from_memory(kernels[k]);
    }
    turn_ = 0;
    if (state_ == CacheState::kCold) {
      ring_ = round_up(kPassings * passing_ / threads_, kStep);
      turn_ = round_up(passing_ / threads_, kStep);
    } else if (streaming > 0) {
      ring_ = round_up(shared_ / threads_, kStep);
      if (shared_ > own) turn_ = round_up((shared_ - own) / streaming / threads_, kStep);
    }
    return buffers().reserve(threads_, private_ + ring_);
  }

  // Does so for one run, and tells whether the machine is quiet after it.
  bool prepare(const TimedKernel& timed) {
    const bool streaming = streams(timed), warm = state_ == CacheState::kWarm;
    CoreProbe probe(threads_);
    everywhere_([&](int thread) {
      if (streaming) {
        const size_t first = std::min(turn_, ring_ - next_);
        stream(thread, private_ + next_, first);
        stream(thread, private_, turn_ - first);
        // The rest was in use a few kernels ago.
        for (const TimedBuffer& output : timed.outputs)
          if (!is_large(output)) rewrite(output, thread);
        if (!is_large(timed.workspace)) rewrite(timed.workspace, thread);
      }
      if (!warm) stream(thread, 0, private_);
      if (!warm)
        for (const TimedBuffer& input : timed.inputs) rewrite(input, thread);
      probe.look(thread);
    });
    if (streaming) next_ = (next_ + turn_) % ring_;
    return is_quiet(probe.state());
  }

 private:
  const size_t private_;  // bytes that a thread reads to empty its core's own cache
  // Of all threads: more than a shared cache keeps. One of hundreds of megabytes is used by many
  // guests, and keeps more or less from one hour to the next.
  const size_t shared_ = std::clamp<size_t>(4 * shared_cache_bytes(), 128 << 20, 768 << 20);
  // Constants of that size stay in a large shared cache: a core's own one holds them while a kernel
  // runs, and what is read there several times is kept in the shared one. A small one is passed
  // through by all that a model reads.
  const size_t stays_ = shared_cache_bytes() >= kLargeSharedCache ? 1536 << 10 : 0;
  static constexpr size_t kLargeSharedCache = 128 << 20;
  static constexpr size_t kPassings = 8;  // until the same bytes pass again
  static constexpr size_t kStep = 512;    // of streaming: eight lines

  // Of the process: in a worker, or of the thread whose turn_to_measure it is.
  static EvictionBuffers& buffers() {
    static EvictionBuffers buffers;
    return buffers;
  }
  // Whether bytes pass before it.
  bool streams(const TimedKernel& timed) const {
    if (state_ == CacheState::kCold) return passing_ > 0 && timed.kernel->constant_bytes() > 0;
    return state_ == CacheState::kStreaming && from_memory(timed) > stays_;
  }
  // Bytes that streaming pushes out. Large tensors lie where the model wrote a while ago: it takes
  // time to write so much elsewhere.
  static size_t from_memory(const TimedKernel& timed) {
    size_t bytes = timed.kernel->constant_bytes();
    for (const TimedBuffer& output : timed.outputs) bytes += is_large(output) ? output.bytes : 0;
    return bytes + (is_large(timed.workspace) ? timed.workspace.bytes : 0);
  }
  static bool is_large(const TimedBuffer& buffer) { return buffer.bytes > 4 << 20; }
  void stream(int thread, size_t offset, size_t bytes) {
    const int64_t* values = buffers().of_thread(thread) + offset / sizeof(int64_t);
    uint64_t sums[8] = {};  // of whatever the buffer holds: they may overflow
    for (size_t i = 0; i < bytes / sizeof(int64_t); i += kStep / sizeof(int64_t))
      for (size_t j = 0; j < 8; ++j) sums[j] += static_cast<uint64_t>(values[i + 8 * j]);
    for (uint64_t sum : sums) sink_.fetch_add(sum, std::memory_order_relaxed);
  }
  // Pages in turns: whoever writes a tensor in a model shares it out in its own way, so that a
  // reader finds only some of its part in its own core's cache.
  void rewrite(const TimedBuffer& buffer, int thread) const {
    constexpr size_t kLine = 64, kPage = 4096;
    auto* values = static_cast<volatile char*>(buffer.data);
    for (size_t page = kPage * thread; page < buffer.bytes; page += kPage * threads_)
      for (size_t b = page; b < std::min(page + kPage, buffer.bytes); b += kLine)
        values[b] = values[b];
  }

  CacheState state_;
  size_t passing_;  // bytes, of all threads
  int threads_;
  size_t turn_ = 0;  // bytes that each thread streams before a kernel with constants
  size_t ring_ = 0;  // of its buffer: as many as it has behind the first private_ bytes
  size_t next_ = 0;  // where in the ring the next turn begins
  Everywhere everywhere_;
  std::atomic<uint64_t> sink_{0};
};

// Waits until the machine is quiet, as long as there is patience, each time with the caches
// prepared once more. Calls `alive` while it waits. Gives the seconds waited.
template <typename Alive>
double prepare_quietly(const TimedKernel& kernel, Evictor& evictor, Patience& patience,
                       Alive&& alive) {
  double waited = 0;
  for (Stopwatch watch; !evictor.prepare(kernel) && patience.is_left();) {
    alive();
    std::this_thread::sleep_for(kPause);
    const double seconds = watch.restart();
    patience.waited(seconds);
    waited += seconds;
  }
  return waited;
}

struct State {
  std::vector<void*> inputs, outputs;  // of the kernel, as it wants them
  std::vector<double> samples;
  int batch = 1;
  double spent = 0;
  Interval interval;  // of the median
  Status failure;
};

class Timer {
 public:
  Timer(std::vector<TimedKernel>& kernels, const TimingOptions& options)
      : kernels_(kernels), options_(options), states_(kernels.size()) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      for (const TimedBuffer& buffer : kernels[k].inputs) states_[k].inputs.push_back(buffer.data);
      for (const TimedBuffer& buffer : kernels[k].outputs)
        states_[k].outputs.push_back(buffer.data);
    }
  }

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
        if (round + 1 >= options_.hopeless_rounds)
          best_high_ = std::min(best_high_, states_[k].interval.high);
      }
      std::erase_if(order, [&](size_t k) { return is_known(states_[k]); });
    }
    return {};
  }

  std::vector<Result<Measured>> results() const {
    std::vector<Result<Measured>> results;
    for (const State& state : states_) {
      if (!state.failure.ok()) {
        results.push_back(state.failure);
      } else {
        results.push_back(summarise(state.samples));
      }
    }
    return results;
  }

 private:
  // Runs kernel k `count` times and gives the seconds of one run; 0 after a failure.
  double run_batch(size_t k, int count, int warm_ups) {
    const TimedKernel& timed = kernels_[k];
    State& state = states_[k];
    const KernelArgs args{state.inputs.data(), state.outputs.data(), timed.workspace.data};
    Status& failure = state.failure;
    if (options_.running != nullptr) options_.running->store(static_cast<int32_t>(k));
    if (options_.beats != nullptr) options_.beats->fetch_add(1);
    for (int i = 0; i < warm_ups && failure.ok(); ++i) failure = timed.kernel->run(args);
    const Stopwatch watch;
    for (int i = 0; i < count && failure.ok(); ++i) failure = timed.kernel->run(args);
    return watch.seconds() / count;
  }

  bool is_known(const State& state) const {
    int count = static_cast<int>(state.samples.size());
    if (count >= 3 && state.spent > options_.max_seconds_per_kernel) return true;
    if (count >= options_.hopeless_rounds && state.interval.low > options_.hopeless * best_high_)
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
    static Patience patience;
    patience.allow(options_.patience);
    State& state = states_[k];
    const bool warm = options_.cache == CacheState::kWarm;
    const Stopwatch watch;
    const double waited = prepare_quietly(kernels_[k], evictor, patience, [&] {
      if (options_.beats != nullptr) options_.beats->fetch_add(1);
    });
    state.samples.push_back(run_batch(k, state.batch, warm ? 1 : 0));
    const double seconds = watch.seconds() - waited;
    state.spent += seconds;
    patience.timed(seconds);
  }

  std::vector<TimedKernel>& kernels_;
  const TimingOptions& options_;
  std::vector<State> states_;
  double best_high_ = std::numeric_limits<double>::infinity();  // of the medians' intervals
};

}  // namespace

struct Sampler::Impl {
  ThreadTeam& team;
  Evictor evictor, parked;  // where the team runs, and where it is parked
  Patience patience;

  Impl(ThreadTeam& on, CacheState state)
      : team(on),
        evictor(state, kBetweenOthers * private_cache_bytes(), 0, on.size(),
                [&on](const std::function<void(int)>& body) { on.run(body); }),
        parked(
            state, kBetweenOthers * private_cache_bytes(), 0, on.size(),
            [&on](const std::function<void(int)>& body) { run_on_new_threads(on.size(), body); }) {}

  // A kernel as it is called.
  struct Call {
    Kernel& kernel;
    std::vector<void*> inputs, outputs;
    void* workspace;
    explicit Call(const TimedKernel& timed)
        : kernel(*timed.kernel), workspace(timed.workspace.data) {
      for (const TimedBuffer& buffer : timed.inputs) inputs.push_back(buffer.data);
      for (const TimedBuffer& buffer : timed.outputs) outputs.push_back(buffer.data);
    }
    Status run() const { return kernel.run({inputs.data(), outputs.data(), workspace}); }
  };

  // With the team parked where the kernel brings its own threads.
  Result<double> sample(const TimedKernel& timed, const TimedKernel* before, Evictor& by) {
    TRY(by.begin_round({timed}, {0}));
    prepare_quietly(timed, by, patience, [] {});
    const Call call(timed);
    if (before != nullptr) TRY(Call(*before).run());
    const Stopwatch watch;
    TRY(call.run());
    const double seconds = watch.seconds();
    patience.timed(seconds);
    return seconds;
  }
};

Sampler::Sampler(ThreadTeam& team, CacheState cache, double patience)
    : impl_(std::make_unique<Impl>(team, cache == CacheState::kWarm ? cache : CacheState::kCold)) {
  impl_->patience.allow(patience);
}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

Status Sampler::run(const TimedKernel& kernel) {
  const TeamScope scope(impl_->team.size());
  if (kernel.kernel->thread_use() != ThreadUse::kOwnPool) return Impl::Call(kernel).run();
  Status status;
  impl_->team.park([&] { status = Impl::Call(kernel).run(); });
  return status;
}

Result<double> Sampler::sample(const TimedKernel& timed, const TimedKernel* before) {
  const TeamScope scope(impl_->team.size());
  if (timed.kernel->thread_use() != ThreadUse::kOwnPool)
    return impl_->sample(timed, before, impl_->evictor);
  Result<double> seconds = 0.0;
  impl_->team.park([&] { seconds = impl_->sample(timed, before, impl_->parked); });
  return seconds;
}

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

Interval median_interval(std::vector<double> sample) {
  std::sort(sample.begin(), sample.end());
  // The number of observations below the median is binomial: 0.98 = 1.96 / 2 standard deviations.
  auto count = static_cast<double>(sample.size());
  double reach = 0.98 * std::sqrt(count);
  auto low = static_cast<size_t>(std::max(0.0, std::floor(count / 2 - reach)));
  auto high = static_cast<size_t>(std::min(count - 1, std::ceil(count / 2 + reach) - 1));
  return {sample[low], sample[std::max(low, high)]};
}

Measured summarise(const std::vector<double>& samples) {
  return {median(samples), percentile(samples, 0.1), percentile(samples, 0.9),
          static_cast<int>(samples.size())};
}

namespace {

// Of the median, taken as normal, from the spread of a normal sample.
double squared_standard_error(const Measured& sample) {
  const double deviation = (sample.p90 - sample.p10) / 2.56;
  return 1.57 * deviation * deviation / std::max(sample.samples, 1);
}

}  // namespace

Measured of_two_looks(const Measured& first, const Measured& second) {
  const double apart = second.median - first.median;
  if (apart * apart > 4 * (squared_standard_error(first) + squared_standard_error(second)))
    return apart < 0 ? second : first;
  const double one = std::max(first.samples, 1), other = std::max(second.samples, 1);
  const auto mean = [&](double a, double b) { return (one * a + other * b) / (one + other); };
  return {mean(first.median, second.median), mean(first.p10, second.p10),
          mean(first.p90, second.p90), first.samples + second.samples};
}

Result<std::vector<Result<Measured>>> time_kernels(std::vector<TimedKernel>& kernels,
                                                   ThreadTeam& team, const TimingOptions& options) {
  const TeamScope scope(team.size());
  // Idle threads of one pool spin for milliseconds and would steal the cores from the other:
  // kernels of the team are timed first, then, after a pause and with the team parked throughout,
  // those that bring their own threads.
  std::vector<size_t> of_team, of_own_pool;
  for (size_t k = 0; k < kernels.size(); ++k)
    (kernels[k].kernel->thread_use() == ThreadUse::kOwnPool ? of_own_pool : of_team).push_back(k);
  Timer timer(kernels, options);
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
