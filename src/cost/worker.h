// The measuring worker: a process that compiles and runs candidates, so that a crash, hang or
// memory blow-up of a backend costs that candidate and never the run. Both halves are here: the
// loop inside the worker, and the parent's handle on it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cost/task.h"

namespace collage {

// Reads tasks from `in_fd`, a line each, and answers on `out_fd` until the input ends. Backends
// must be registered. Returns the exit status.
int run_worker(int in_fd, int out_fd);

// A worker process, started by fork+exec when first needed and again after each crash.
class Worker {
 public:
  // `command`: the program and its arguments; it must call run_worker on descriptors 3 (tasks) and
  // 4 (events).
  explicit Worker(std::vector<std::string> command) : command_(std::move(command)) {}
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Measures one task. What kills the worker (a signal, silence longer than the time limit) is
  // blamed on the subject it had announced: that subject becomes Invalid and the rest of the task
  // is measured by a fresh worker. kUnavailable: no worker can be started, which says nothing about
  // the task; other failures are the task's.
  Result<std::vector<TargetCosts>> measure(MeasureTask task);

 private:
  struct Reply {
    bool died = false;
    std::string subject;  // what it was doing
    std::string reason;   // how it died
    std::vector<TargetCosts> costs;
  };
  Status start();
  void stop();
  Result<Reply> exchange(const MeasureTask& task);
  // The next line from the worker; false when it died or stayed silent too long.
  bool read_line(std::string& line, std::string& reason);

  std::vector<std::string> command_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string buffer_;
};

}  // namespace collage
