// Executes measuring tasks inside this process: lists variants, compiles them, verifies each
// against the reference, times the correct ones of all tasks interleaved. Runs inside a worker
// (worker.h), so that a crash here does not affect the compiler.
#pragma once

#include <atomic>
#include <functional>

#include "measure/noise_gate.h"
#include "measure/task.h"

namespace collage {

// Called before each step, so that the parent knows what ended a worker.
struct MeasureHooks {
  // Called before anything that may crash because of that subject.
  std::function<void(const std::string& subject)> begin = [](const std::string&) {};
  // Called before the correct variants are timed together; from then on `running` holds the
  // position in `subjects` of the one that runs, and `beats` grows with every batch of runs.
  std::function<void(const std::vector<std::string>& subjects)> timing =
      [](const std::vector<std::string>&) {};
  // Called when the process is unusable, memory that ran out included; does not return in a worker.
  std::function<void(const std::string& why)> give_up = [](const std::string&) {};
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// Measures functions, all timed together: tasks of one effort, cache state and number of threads.
// Returns one answer a task, with one entry a target, in the task's order: costs or a refusal. The
// gate is the worker's, for all its tasks.
std::vector<Result<std::vector<TargetCosts>>> measure_functions(
    const std::vector<MeasureTask>& tasks, const MeasureHooks& hooks, NoiseGate& gate);
// The target is a backend's name, with one variant "convert".
Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const MeasureHooks& hooks, NoiseGate& gate);

}  // namespace collage
