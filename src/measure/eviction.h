// Puts the caches into the state that a kernel meets in a model. Where constants stream, kernels
// take turns, and between two turns of one as many bytes pass through the shared caches as push its
// constants out: those of its rivals and, for the rest, a stream of the threads before each turn.
// Where they do not, `passing` bytes pass in a round, a part of them before each kernel.
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
  // compete with those of the kernel: where a spinning worker of the team is pushed off its core,
  // the next kernel waits for it until the scheduler moves it back, 4 to 8 ms later.
  using Everywhere = std::function<void(const std::function<void(int)>&)>;
  // `own`: bytes that a thread reads to empty its core's own cache.
  Evictor(CacheState state, size_t own, size_t passing, int threads, Everywhere everywhere);

  // Those numbered in `turns` run in turns from now on.
  Status begin_round(const std::vector<TimedKernel>& kernels, const std::vector<size_t>& turns);

  // Does so for one run, and looks at the cores after it.
  CoreState prepare(const TimedKernel& timed);

 private:
  const size_t private_;  // bytes
  // Of all threads: more than a shared cache keeps. One of hundreds of megabytes is used by many
  // guests, and keeps more or less from one hour to the next.
  const size_t shared_;
  // Constants of that size stay in a large shared cache: a core's own one holds them while a kernel
  // runs, and what is read there several times is kept in the shared one. A small one is passed
  // through by all that a model reads.
  const size_t stays_;
  // Whether bytes pass before it.
  bool streams(const TimedKernel& timed) const;
  // Bytes that streaming pushes out. Large tensors lie where the model wrote a while ago: it takes
  // time to write so much elsewhere.
  static size_t from_memory(const TimedKernel& timed);
  void stream(int thread, size_t offset, size_t bytes);
  // Pages in turns: whoever writes a tensor in a model shares it out in its own way, so that a
  // reader finds only some of its part in its own core's cache.
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

// What a thread reads to push everything out of its core's own cache: more than that holds, but
// little of a shared one, where a model keeps what its kernels hand on.
size_t own_caches();
// What passes through the shared caches between two runs of one kernel where a model's constants
// fit them, shared out among those that are timed in turns: the rest of the model.
inline constexpr size_t kRestOfModel = 16 << 20;

// Waits until the machine is quiet, as long as there is patience, each time with the caches
// prepared once more. Calls `alive` while it waits. Gives the seconds waited.
template <typename Alive>
double prepare_quietly(const TimedKernel& kernel, Evictor& evictor, NoiseGate& gate,
                       Alive&& alive) {
  constexpr auto kPause = std::chrono::milliseconds(1);  // before it is looked again
  double waited = 0;
  for (Stopwatch watch; !gate.is_quiet(evictor.prepare(kernel)) && gate.has_patience();) {
    alive();
    std::this_thread::sleep_for(kPause);
    const double seconds = watch.restart();
    gate.waited(seconds);
    waited += seconds;
  }
  return waited;
}

}  // namespace collage
