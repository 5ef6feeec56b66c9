// Measurer: asks worker processes (measure/worker.h). It excludes subjects that killed a worker
// before, and records at once what kills one now. It keeps no answers.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "cost/cost_store.h"

namespace collage {

class Measurer {
 public:
  // The store must outlive it.
  Measurer(CostStore& store, CostOptions options);

  MeasureTask task_of(Request request, std::vector<std::string> targets) const;
  // One entry a target. If the task failed, every target refuses with its reason. None after an
  // interrupt (base/interrupt.h).
  using Answer = std::optional<std::vector<TargetCosts>>;
  // kUnavailable: no worker can be started.
  Result<Answer> ask(MeasureTask task);
  // Times nothing any more after so many seconds from now: there is no answer, as after an
  // interrupt.
  void time_for(double seconds);
  bool is_over() const;                        // rests (pace.h) do not count
  bool was_over() const { return was_over_; }  // at some time when that was asked

  // Times functions together, as many at once as fit the memory; each task has a TimeRequest.
  Result<std::vector<Answer>> ask_together(std::vector<MeasureTask> tasks);
  // Asks as many workers as the program has threads; does nothing for one. Calls `answered` for
  // each task that did not fail, one at a time, and `done` with the number of finished tasks on the
  // calling thread.
  void ask_beside(std::vector<MeasureTask> tasks,
                  const std::function<void(size_t task, TargetCosts answer)>& answered,
                  const std::function<void(size_t)>& done);

 private:
  void rest();
  double rested() const;
  Result<std::vector<TargetCosts>> run(MeasureTask task);
  Worker::Answers run_together(std::vector<MeasureTask> tasks);
  static Result<Answer> settled(const MeasureTask& task, Result<std::vector<TargetCosts>> answer);

  CostStore& store_;
  const CostOptions options_;
  std::optional<std::pair<double, Stopwatch>> allowed_;  // seconds, since then
  mutable bool was_over_ = false;
  Worker worker_;
};

}  // namespace collage
