// Whose fault it is that a kernel could not be measured. A failure is the kernel's own, or that of
// the machine at that moment: memory, disk, threads or time that could not be had, a tool that is
// not installed. What the machine lacked says nothing of the kernel: it is tried again in the next
// process, and no database keeps it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "measure/cost.h"

namespace collage {

// Bits of what a process found lacking.
enum Lack : uint32_t { kLacksMemory = 1, kLacksThreads = 2, kLacksDisk = 4 };

// What this process lacks now, as a worker asks at its end. With `in_signal` only what a signal
// handler may look at.
uint32_t lacking_now(bool in_signal);

// Of what a backend, or what runs its kernels, answered: kUnavailable is the machine's.
Invalid fault_of(const Status& failure);
// Of a worker that ended so (waitpid's status) and that nobody here killed, with what it found
// lacking. Where SIGKILL ended it the system did, as it does when memory is used up.
Invalid fault_of_exit(int status, uint32_t lacked);

// Whether it is the machine's.
inline bool is_of_machine(Death death) {
  return death == Death::kMemory || death == Death::kMachine;
}
// Whether a subject that died so may do better in another worker, with the machine less busy.
inline bool may_be_chance(Death death) { return death == Death::kSilence || is_of_machine(death); }

}  // namespace collage
