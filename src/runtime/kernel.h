// Kernel: a compiled variant. It has packed its constants; `run` reads and writes buffers that the
// caller owns, in the variant's encodings, with the workspace it asked for. Buffers are aligned to
// 64 bytes. Inputs are never written.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/kernel_source.h"
#include "runtime/saved_kernel.h"

namespace collage {

struct KernelArgs {
  void* const* inputs;   // one per kernel parameter
  void* const* outputs;  // one per result
  void* workspace;       // workspace_bytes() bytes, contents undefined
};

// The threads that a kernel computes with. The executor parks the team around kernels that bring
// their own.
enum class ThreadUse {
  kTeam,     // the team that the run holds, by OpenMP, or none
  kOwnPool,  // a pool of its own (TBB): idle team workers must be parked while it runs
};

// Where an input may lie inside an output, or an output inside an input, so that a join or a cut of
// tensors copies nothing.
struct InPlace {
  enum class Part { kInput, kOutput };  // the other one is the whole
  Part part = Part::kInput;
  size_t input = 0, output = 0;
  size_t offset = 0;  // bytes into the whole, a multiple of the buffers' alignment

  bool joins() const { return part == Part::kInput; }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // One call at a time for each kernel object. A kernel of a device (runtime/device_memory.h),
  // which reads and writes memory of that device, may return before it is done.
  virtual Status run(const KernelArgs& args) = 0;
  // Waits for all work that `run` began.
  virtual Status finish() { return {}; }
  // Returns a kernel that shares code and constants with this one and may run while it does; null
  // if `run` keeps no state between calls, so that calls may overlap.
  virtual Result<std::shared_ptr<Kernel>> twin() const {
    return unsupported("its kernels run once at a time");
  }
  // Returns whether runs of twins are serialised: they are correct at once, but not faster.
  virtual bool twins_take_turns() const { return false; }
  // Returns what another process makes the same kernel of (runtime/saved_kernel.h), or why it
  // cannot.
  virtual Result<SavedKernel> save() const { return unsupported("its kernels cannot be saved"); }
  // Returns C source and code of the kernel for libraries (--emit library), or why there is none.
  virtual Result<KernelSource> source() const {
    return unsupported("its kernels are no code of their own");
  }
  virtual size_t workspace_bytes() const { return 0; }
  // Bytes of packed constants, which stream through the caches on each run.
  virtual size_t constant_bytes() const { return 0; }
  virtual ThreadUse thread_use() const { return ThreadUse::kTeam; }
  // Places that save the kernel work; `run` is correct whichever of them the caller uses.
  virtual std::vector<InPlace> in_place() const { return {}; }
};

}  // namespace collage
