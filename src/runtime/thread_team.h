// One team of threads for every backend: the OpenMP (libgomp) team of the thread that runs a
// program. OpenMP keeps a team, and the size of the next one, for each thread that the application
// starts. Kernels are compiled for one size and divide their workspace by it, so whoever runs one
// sets the size first: with a TeamScope, or for a whole piece of work with run_with_team.
//
// `run` computes with the team. `park` runs a function on the calling thread while the others give
// their cores away (for 2 ms by yielding, then asleep on a futex): an idle libgomp worker would
// otherwise spin for milliseconds and steal the core from a library that brings its own threads
// (TBB). bench/threads_bench.cc measures what is left: 2–5% of kernels of 50 µs to 1 ms.
//
//   ThreadTeam team(2);
//   team.run([&](int index) { work(index); });   // index in [0, size)
//   team.park([&] { request.infer(); });
#pragma once

#include <functional>

namespace collage {

// Within it, OpenMP regions that the calling thread begins have `threads` threads (at least one);
// afterwards as many as before. Begin and end it on the same thread.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int threads_before_, dynamic_before_;
};

// Runs it within a TeamScope. Where the caller is itself inside an OpenMP region, whose own regions
// would have one thread, it runs on a thread of the moment while the caller waits.
void run_with_team(int threads, const std::function<void()>& body);

// Any thread may use it, but one at a time.
class ThreadTeam {
 public:
  // Cores this process may use: its affinity mask, capped by the container's CPU quota.
  static int available_cores();

  // `threads` <= 0: available_cores(). At most as many as OMP_THREAD_LIMIT allows.
  explicit ThreadTeam(int threads = 0);
  int size() const { return size_; }

  // body(index) on each of its threads, with index in [0, size()).
  void run(const std::function<void(int)>& body);
  // body() on the calling thread, with the others parked.
  void park(const std::function<void()>& body);

 private:
  int size_;
};

// Runs it on the calling thread and on others of the moment, each bound to a core of its own as far
// as there are some: left alone they would begin on the caller's. They are gone afterwards and
// compete with nobody: beside libraries that bring their own threads.
void run_on_new_threads(int threads, const std::function<void(int)>& body);

}  // namespace collage
