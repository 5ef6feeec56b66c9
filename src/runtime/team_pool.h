// The teams of a process: code that runs a program, or a region outside of one, takes a team and
// gives it back. All teams together have as many workers as the process has cores, or as the
// largest team that was requested needs, if that is more; a request for more waits. A child process
// (fork) begins without teams.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/worker_team.h"

namespace collage {

class TeamPool {
 public:
  static TeamPool& of_process();

  explicit TeamPool(int cores) : cores_(cores) {}
  // Takes a team of `threads`, led by the caller; a smaller one if the system gives no more
  // threads. With `may_wait` the call waits for free workers; a thread that holds a team, or
  // computes for one that does, must not wait: others may wait for its team.
  WorkerTeam* take(int threads, bool may_wait);
  void give_back(WorkerTeam* team);  // one of before a fork is left alone
  int workers();                     // of all teams

 private:
  bool fits(int threads) const;
  WorkerTeam* best_idle(int threads);
  int most_workers(int threads) const;

  const int cores_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<WorkerTeam>> teams_;
  std::vector<WorkerTeam*> idle_;  // the last one used comes last
  std::deque<uint64_t> waiting_;   // turns
  uint64_t next_turn_ = 0;
  int workers_ = 0;
};

}  // namespace collage
