// The measuring worker: a process that compiles and runs candidates, so that a crash, hang or
// memory blow-up of a backend costs that candidate and never the run. This is the parent's handle
// on it; the worker's own code is in measure/.
//
// Attribution of failures: the worker announces each subject before it compiles and runs it alone.
// While variants are timed together, it keeps the one that runs in memory shared with the parent;
// since that one may be the victim of another's stray writes, a second death makes the parent
// measure each of them in a worker of its own. Other processes may take memory and time: a subject
// that fails so is tried once more before it is refused.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/task.h"
#include "measure/worker_channel.h"

namespace collage {

// Whether a worker's memory is limited: AddressSanitizer's shadow is private memory too.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kLimitsWorkerMemory = false;
#else
inline constexpr bool kLimitsWorkerMemory = true;
#endif

struct WorkerLimits {
  // A candidate that is silent for this long counts as hanging.
  double silence_seconds = 180;
  // Private memory that a worker may have; 0: 80% of the machine's.
  size_t memory_bytes = 0;
  // Reads $COLLAGE_MEASURE_TIMEOUT in seconds and $COLLAGE_MEASURE_MEMORY in MB, if set.
  static WorkerLimits from_environment();
};

// A worker process, started by fork+exec when first needed and again after each crash.
class Worker {
 public:
  // `command`: the program and its arguments; it must call run_worker.
  explicit Worker(std::vector<std::string> command, WorkerLimits limits = {})
      : command_(std::move(command)), limits_(limits) {}
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Measures one task. A subject that ends the worker (a signal, an exit, silence longer than the
  // limit) becomes Invalid, `on_failure` is called, and fresh workers measure the rest.
  // kUnavailable: no worker of this build can be started, or the user interrupted, which is no
  // result about the task; other failures are the task's.
  using OnFailure = std::function<void(const std::string& subject, const Invalid& how)>;
  Result<std::vector<TargetCosts>> measure(MeasureTask task, const OnFailure& on_failure = nullptr);
  // Measures functions, timed together: one answer each. None if a worker died: then they must be
  // measured one by one. Failures as above.
  using Answers = std::vector<Result<std::vector<TargetCosts>>>;
  Result<std::optional<Answers>> measure_together(const std::vector<MeasureTask>& tasks);

 private:
  struct Reply {
    bool died = false;
    bool while_timing = false;
    std::string subject;  // what it was doing
    Invalid how;          // it died
    Answers answers;      // one a task, as far as it came
  };
  Status start();
  Status spawn();
  Status agree_on_build();
  void stop();
  Status share_memory();
  Result<Reply> exchange(const std::vector<MeasureTask>& tasks);
  bool send(const nlohmann::json& message);
  // Reads the next line from the worker; false if it died or was silent too long.
  bool read_line(std::string& line, Invalid& how);
  Result<std::vector<TargetCosts>> measure_one_by_one(MeasureTask task, const Reply& failed,
                                                      const OnFailure& on_failure);

  std::vector<std::string> command_;
  WorkerLimits limits_;
  pid_t pid_ = -1;
  int pid_fd_ = -1, to_ = -1, from_ = -1, shared_fd_ = -1;
  SharedWithWorker* shared_ = nullptr;
  std::string buffer_;
};

}  // namespace collage
