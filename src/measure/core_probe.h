// Looks at the cores of a shared machine: whether other guests compute on them, and how far they
// lie from one another. Where virtual cores are not bound to real ones, two of them that shared a
// cache a moment ago may not share one now, for milliseconds to minutes: what one core wrote and
// another reads then takes several times as long.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace collage {

// How long independent multiply-adds take on the calling thread's core as a part of what as many
// rounds of dependent ones take, which need a fraction of the core: about the same everywhere at
// any clock, up to twice as much on a core that is shared. Some 7 µs.
double core_contention();

// Of all cores at one moment; 0: not known.
struct CoreState {
  double contention = 0;    // the largest of theirs
  double core_to_core = 0;  // seconds that a cache line takes from one core to the next, on average
  // Seconds a byte that all of them read from memory together; the least that was seen, where
  // kernels stream from there (probe.h).
  double memory = 0;
};

// One look of so many threads.
class CoreProbe {
 public:
  explicit CoreProbe(int threads) : contention_(static_cast<size_t>(threads)) {}
  // To be called once by each of them, at the same time, with its number. Some 20 µs.
  void look(int thread);
  // Afterwards. How far cores lie apart is not known of one, nor where some of the threads did not
  // run at the same time.
  CoreState state() const;

 private:
  void hand_over(int64_t thread);
  bool await_turn(int64_t turn);

  std::vector<double> contention_;  // of each thread's core
  double core_to_core_ = 0;
  alignas(64) std::atomic<int64_t> turn_{0};
};

}  // namespace collage
