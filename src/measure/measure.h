// Measuring tasks inside this process: enumerate variants, compile them, verify each against the
// reference, time the survivors of all tasks interleaved. Runs inside a worker (worker.h); a crash
// here is the worker's, never the compiler's.
#pragma once

#include <atomic>
#include <functional>

#include "measure/noise_gate.h"
#include "measure/task.h"

namespace collage {

// How a measurement tells what it is about to do, so that a death can be blamed.
struct MeasureHooks {
  // Before anything that may crash on that subject's account.
  std::function<void(const std::string& subject)> begin = [](const std::string&) {};
  // Before the survivors are timed together; from then on `running` holds the position in
  // `subjects` of the one that runs, and `beats` grows with every batch of runs.
  std::function<void(const std::vector<std::string>& subjects)> timing =
      [](const std::vector<std::string>&) {};
  // When nothing that follows can be trusted, memory that ran out included; does not return in a
  // worker.
  std::function<void(const std::string& why)> give_up = [](const std::string&) {};
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// Functions, all timed together: tasks of one effort, cache state and number of threads. One answer
// a task, in it one entry a target, in the task's order. Every target is answered: with costs or
// with a refusal. The gate is the worker's, whatever it measures.
std::vector<Result<std::vector<TargetCosts>>> measure_functions(
    const std::vector<MeasureTask>& tasks, const MeasureHooks& hooks, NoiseGate& gate);
// Target is a backend's name, with one variant "convert".
Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const MeasureHooks& hooks, NoiseGate& gate);

}  // namespace collage
