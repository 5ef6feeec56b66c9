// Probes the cores of a shared machine: whether other guests compute on them, and how far apart
// they are. If virtual cores are not bound to real ones, two of them may share a cache at one
// moment and not at the next, for milliseconds to minutes: reading what another core wrote then
// takes several times as long.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace collage {

// Returns the time of independent multiply-adds on the calling thread's core divided by that of as
// many rounds of dependent ones, which need a fraction of the core: about the same everywhere at
// any clock, up to twice as much on a core that is shared. Takes about 7 µs.
double core_contention();

// The state of all cores at one moment; 0: not known.
struct CoreState {
  double contention = 0;    // the largest of theirs
  double core_to_core = 0;  // seconds that a cache line takes from one core to the next, on average
  // Seconds a byte that all of them read from memory together; the least that was seen, where
  // kernels stream from there (probe.h).
  double memory = 0;
};

// One probe by several threads.
class CoreProbe {
 public:
  explicit CoreProbe(int threads) : contention_(static_cast<size_t>(threads)) {}
  // Must be called once by each thread, at the same time, with its number. Takes about 20 µs.
  void look(int thread);
  // Returns the state afterwards. The distance of cores is unknown for one core, and if some
  // threads did not run at the same time.
  CoreState state() const;

 private:
  void hand_over(int64_t thread);
  bool await_turn(int64_t turn);

  std::vector<double> contention_;  // of each thread's core
  double core_to_core_ = 0;
  alignas(64) std::atomic<int64_t> turn_{0};
};

}  // namespace collage
