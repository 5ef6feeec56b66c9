#include "measure/sampler.h"

#include "base/processor.h"
#include "base/stopwatch.h"
#include "measure/eviction.h"

namespace collage {

namespace {

// What is read to empty a core's own cache, as often as that holds: other kernels of the model push
// out their part.
constexpr size_t kBetweenOthers = 2;

}  // namespace

struct Sampler::Impl {
  ThreadTeam& team;
  Evictor evictor, parked;  // where the team runs, and where it is parked
  NoiseGate& gate;

  Impl(ThreadTeam& on, CacheState state, NoiseGate& noise)
      : team(on),
        evictor(state, kBetweenOthers * private_cache_bytes(), 0, on.size(),
                [&on](const std::function<void(int)>& body) { on.run(body); }),
        parked(
            state, kBetweenOthers * private_cache_bytes(), 0, on.size(),
            [&on](const std::function<void(int)>& body) { run_on_new_threads(on.size(), body); }),
        gate(noise) {}

  // A kernel as it is called.
  struct Call {
    Kernel& kernel;
    TimedArguments arguments;
    explicit Call(const TimedKernel& timed) : kernel(*timed.kernel), arguments(timed) {}
    Status run() const {
      TRY(kernel.run(arguments.args()));
      return kernel.finish();
    }
  };

  // With the team parked where the kernel brings its own threads.
  Result<double> sample(const TimedKernel& timed, const TimedKernel* before, Evictor& by) {
    TRY(by.begin_round({timed}, {0}));
    prepare_quietly(timed, by, gate, [] {});
    const Call call(timed);
    if (before != nullptr) TRY(Call(*before).run());
    const Stopwatch watch;
    TRY(call.run());
    const double seconds = watch.seconds();
    gate.timed(seconds);
    return seconds;
  }
};

Sampler::Sampler(ThreadTeam& team, CacheState cache, NoiseGate& gate)
    : impl_(std::make_unique<Impl>(team, cache == CacheState::kWarm ? cache : CacheState::kCold,
                                   gate)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

Status Sampler::run(const TimedKernel& kernel) {
  const TeamHold hold(impl_->team.size());
  TRY(hold.status());
  if (kernel.kernel->thread_use() != ThreadUse::kOwnPool) return Impl::Call(kernel).run();
  Status status;
  impl_->team.park([&] { status = Impl::Call(kernel).run(); });
  return status;
}

Result<double> Sampler::sample(const TimedKernel& timed, const TimedKernel* before) {
  const TeamHold hold(impl_->team.size());
  TRY(hold.status());
  if (timed.kernel->thread_use() != ThreadUse::kOwnPool)
    return impl_->sample(timed, before, impl_->evictor);
  Result<double> seconds = 0.0;
  impl_->team.park([&] { seconds = impl_->sample(timed, before, impl_->parked); });
  return seconds;
}

}  // namespace collage
