// Puts the caches into the state that a kernel meets in a model. If constants stream, kernels take
// turns, and between two turns of one enough bytes pass through the shared caches to evict its
// constants: those of its rivals and, for the rest, a stream of the threads before each turn.
// Otherwise `passing` bytes pass in a round, a part of them before each kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "measure/noise_gate.h"
#include "measure/timing.h"

namespace collage {

class Evictor {
 public:
  // Runs a function of a thread's number on every core. It must not leave threads behind that
  // compete with those of the kernel: if a spinning worker of the team is pushed off its core, the
  // next kernel waits for it until the scheduler moves it back, 4 to 8 ms later.
  using Everywhere = std::function<void(const std::function<void(int)>&)>;
  // `own`: bytes that a thread reads to evict its core's own cache.
  Evictor(CacheState state, size_t own, size_t passing, int threads, Everywhere everywhere);

  // Starts a round over kernels[turns[i]].
  Status begin_round(const std::vector<TimedKernel>& kernels, const std::vector<size_t>& turns);

  // Prepares the caches for one run, and probes the cores after it.
  CoreState prepare(const TimedKernel& timed);

 private:
  const size_t private_;  // bytes
  // Bytes of all threads: more than a shared cache keeps. Large shared caches are used by other
  // virtual machines; how much stays varies.
  const size_t shared_;
  // Constants up to that size stay in a large shared cache: a core's own cache holds them while a
  // kernel runs, and data read several times is kept in the shared one. A small shared cache is
  // flushed by what a model reads.
  const size_t stays_;
  // Returns whether bytes stream before this kernel.
  bool streams(const TimedKernel& timed) const;
  // Bytes that streaming evicts. Large tensors lie where the model wrote a while ago: writing as
  // much elsewhere takes time.
  static size_t from_memory(const TimedKernel& timed);
  void stream(int thread, size_t offset, size_t bytes);
  // Writes pages in turns: kernels of a model divide a tensor in different ways, so a reader finds
  // only some of its part in its own core's cache.
  void rewrite(const TimedBuffer& buffer, int thread) const;

  CacheState state_;
  size_t passing_;  // bytes, of all threads
  int threads_;
  size_t turn_ = 0;  // bytes that each thread streams before a kernel with constants
  size_t ring_ = 0;  // of its buffer: as many as it has behind the first private_ bytes
  size_t next_ = 0;  // where in the ring the next turn begins
  Everywhere everywhere_;
  std::atomic<uint64_t> sink_{0};
};

// Bytes that a thread reads to evict its core's own cache: more than that holds, but little of a
// shared one, where a model keeps what its kernels pass on.
size_t own_caches();
// Bytes that pass through the shared caches between two runs of one kernel if a model's constants
// fit them, divided among those that are timed in turns: the rest of the model.
inline constexpr size_t kRestOfModel = 16 << 20;

// Waits until the machine is quiet or the gate's time is up, preparing the caches each time. Calls
// `alive` while it waits. Returns the seconds waited.
template <typename Alive>
double prepare_quietly(const TimedKernel& kernel, Evictor& evictor, NoiseGate& gate,
                       Alive&& alive) {
  constexpr auto kPause = std::chrono::milliseconds(1);  // before it is looked again
  double waited = 0;
  for (Stopwatch watch; !gate.is_quiet(evictor.prepare(kernel)) && gate.has_time_left();) {
    alive();
    std::this_thread::sleep_for(kPause);
    const double seconds = watch.restart();
    gate.waited(seconds);
    waited += seconds;
  }
  return waited;
}

}  // namespace collage
