// One team of threads for every backend of the process: the OpenMP (libgomp) team of the calling
// thread.
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

class ThreadTeam {
 public:
  // Cores this process may use: its affinity mask, capped by the container's CPU quota.
  static int available_cores();

  // `threads` <= 0: available_cores(). Sets the OpenMP team size of the calling thread; use the
  // team from that thread.
  explicit ThreadTeam(int threads = 0);
  int size() const { return size_; }

  void run(const std::function<void(int)>& body);
  void park(const std::function<void()>& body);

 private:
  int size_;
};

// Runs it on the calling thread and on others of the moment, each bound to a core of its own as far
// as there are some: left alone they would begin on the caller's. They are gone afterwards and
// compete with nobody: beside libraries that bring their own threads.
void run_on_new_threads(int threads, const std::function<void(int)>& body);

}  // namespace collage
