// Teams of threads for every backend, from one pool of the process (runtime/team_pool.h): code
// compiled with -fopenmp, oneDNN and OpenBLAS compute with them (runtime/openmp_calls.h). Kernels
// are compiled for one size and divide their workspace by it, so the caller of a kernel states the
// size first: with a TeamScope, or for a whole piece of work, with a team of its own, with
// run_with_team.
//
// `run` computes with a team. `park` runs a function on the calling thread while the others release
// their cores (for 2 ms by yielding, then asleep on a futex): an idle worker would otherwise stay
// awake and occupy a core that a library with its own threads (TBB) needs. bench/threads_bench.cc
// measures the remaining loss: 2–5% of kernels of 50 µs to 1 ms.
//
//   ThreadTeam team(2);
//   team.run([&](int index) { work(index); });   // index in [0, size)
//   team.park([&] { request.infer(); });
#pragma once

#include <functional>

#include "base/result.h"
#include "runtime/worker_team.h"

namespace collage {

// Within it, parallel regions that the calling thread begins have `threads` threads (at least one);
// afterwards as many as before. Each region takes a team, unless the thread holds one
// (run_with_team). Begin and end it on the same thread.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  const Place before_;
  const int application_threads_;
};

// A TeamScope whose regions are computed by a team that the calling thread holds. The constructor
// waits for a free team (docs/threads.md).
class TeamHold {
 public:
  explicit TeamHold(int threads);
  ~TeamHold();
  // kInternal: the system gives too few threads; then kernels for this size must not be run.
  const Status& status() const { return status_; }

 private:
  const TeamScope scope_;
  WorkerTeam* taken_ = nullptr;
  Status status_;
};

// Runs `body()`, which returns a Status or a Result, with a team held.
template <typename Body>
auto run_with_team(int threads, const Body& body) -> decltype(body()) {
  const TeamHold hold(threads);
  if (!hold.status().ok()) return hold.status();
  return body();
}

// Any thread may use it, but one at a time.
class ThreadTeam {
 public:
  // Cores this process may use: its affinity mask, capped by the container's CPU quota.
  static int available_cores();

  // `threads` <= 0: available_cores(). At most as many as OMP_THREAD_LIMIT allows.
  explicit ThreadTeam(int threads = 0);
  int size() const { return size_; }

  // Calls body(index) on each of its threads, with index in [0, size()).
  void run(const std::function<void(int)>& body);
  // Calls body() on the calling thread, with the others parked.
  void park(const std::function<void()>& body);

 private:
  int size_;
};

// Runs `body` on the calling thread and on temporary threads, each bound to a core of its own as
// far as there are enough: unbound they would begin on the caller's core. They end before the call
// returns, so they do not compete with libraries that bring their own threads.
void run_on_new_threads(int threads, const std::function<void(int)>& body);

}  // namespace collage
