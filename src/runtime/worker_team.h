// Threads that compute regions together with the thread that leads them. A region runs a function
// once for each index of [0, count). The leader computes index 0; each worker begins with an index
// of its own, and a thread that is done takes one that is not begun. So a worker without a core
// delays the region only if it has begun. If the calls of a region wait for one another (barriers),
// no call ends before all have begun, each on a thread of its own: `count` is at most the team's
// size.
//
// One thread at a time leads a team; between regions the leader may change.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace collage {

// A word that threads wait for: first awake, then asleep on a futex.
class Signal {
 public:
  explicit Signal(uint32_t value = 0) : value_(value) {}
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void set(uint32_t value) {
    value_.store(value);
    wake();
  }
  bool replace(uint32_t old, uint32_t value) { return value_.compare_exchange_strong(old, value); }
  // Subtracts one; wakes at zero.
  void count_down() {
    if (value_.fetch_sub(1) == 1) wake();
  }
  // Waits until it is no longer `value`. `resting`: yields the core from the beginning.
  void wait_while(uint32_t value, const std::atomic<bool>* resting = nullptr);

 private:
  void wake();
  std::atomic<uint32_t> value_;
  std::atomic<uint32_t> sleepers_{0};
};

// A loop of which each thread of a region computes a part.
struct TeamLoop {
  long start = 0, end = 0, increment = 1;
  long chunk = 0;       // iterations at a time; 0: a share for each thread
  long next_chunk = 0;  // if chunks are assigned beforehand
};

struct Region {
  using Body = void (*)(void*);
  Body body = nullptr;
  void* data = nullptr;
  int count = 1;
  int threads = 1;      // of the leader's TeamScope
  TeamLoop first_loop;  // where the region is one

  // State that the calls share:
  std::atomic<int> at_barrier{0};
  Signal barriers;                   // passed
  std::atomic<uint32_t> singles{0};  // begun
  std::atomic<uint64_t> loop{0};     // the number of a loop << 40 | iterations begun
};

class WorkerTeam {
 public:
  static constexpr int kMostThreads = 1024;

  WorkerTeam();
  ~WorkerTeam();  // its workers end
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int size() const { return size_; }  // the leader is one of them
  // Starts workers, fewer if no thread is available; or ends some.
  void resize(int size);
  // Prepares for the calling thread as leader of so many threads: workers get its affinity, less
  // the core that it is on if enough others are left.
  void follow_caller(int threads);

  // `body(data)` reads its index with here(). The leader computes index 0 between the two calls.
  Region& begin(int count, int threads, Region::Body body, void* data, const TeamLoop& loop);
  void end();

  // While it is set, workers without work yield their cores at once.
  void rest(bool resting) { resting_.store(resting, std::memory_order_relaxed); }

 private:
  struct Worker;
  static void* work(void* worker);
  bool start(Worker& worker);
  void compute(int index);
  bool take(int index, uint32_t region);  // whether it was not begun
  void help(int own, uint32_t region);

  std::unique_ptr<std::atomic<Worker*>[]> workers_;  // index 0 is the leader's: none
  int size_ = 1;
  uint32_t regions_ = 0;
  std::atomic<bool> resting_{false};
  std::atomic<int> count_{1};
  Region region_;
  Signal unfinished_;
  cpu_set_t affinity_;  // of the workers
};

// The calling thread's place in teams and regions.
struct Place {
  WorkerTeam* team = nullptr;  // that the thread leads
  bool holds_team = false;     // here or further out, or computes for one that does
  int threads = 0;             // of a TeamScope; 0: outside
  Region* region = nullptr;
  int index = 0;
  uint32_t loops = 0, singles = 0;  // of the region, come by so far
  TeamLoop loop;
};
Place& here();

}  // namespace collage
