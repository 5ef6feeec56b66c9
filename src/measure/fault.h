// Classifies why a kernel could not be measured: a failure of the kernel, or of the machine at that
// moment (memory, disk, threads or time that could not be had, a tool that is not installed). A
// failure of the machine is no property of the kernel: it is tried again in the next process, and
// no database keeps it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "measure/cost.h"

namespace collage {

// Bits of the resources that a process lacked.
enum Lack : uint32_t { kLacksMemory = 1, kLacksThreads = 2, kLacksDisk = 4 };

// Returns what this process lacks now, for a worker at its end. With `in_signal` only checks that a
// signal handler may do.
uint32_t lacking_now(bool in_signal);

// Classifies an answer of a backend, or of code that runs its kernels: kUnavailable is the
// machine's.
Invalid fault_of(const Status& failure);
// Classifies the end of a worker (waitpid's status) that this process did not kill, with what it
// found lacking. SIGKILL then came from the system, as it does when memory is used up.
Invalid fault_of_exit(int status, uint32_t lacked);

// Returns whether it is the machine's.
inline bool is_of_machine(WorkerFailure failure) {
  return failure == WorkerFailure::kMemory || failure == WorkerFailure::kMachine;
}
// Returns whether a subject that failed so may succeed in another worker, with the machine less
// busy.
inline bool may_be_chance(WorkerFailure failure) {
  return failure == WorkerFailure::kTimeout || is_of_machine(failure);
}

}  // namespace collage
