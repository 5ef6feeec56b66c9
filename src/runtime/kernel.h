// Kernel: a compiled variant. It has prepacked its constants once; `run` reads and writes buffers
// that the caller owns, in the encodings the variant promised, with the workspace it asked for.
// Buffers are aligned to 64 bytes. Inputs are never written.
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

// Whose threads a kernel computes with. The executor parks the team around kernels that
// bring their own.
enum class ThreadUse {
  kTeam,     // the team that the run holds, by OpenMP, or none
  kOwnPool,  // a pool of its own (TBB): idle team workers must be parked while it runs
};

// Where an input may lie inside an output, or an output inside an input: what a join or a cut of
// tensors leaves in place.
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
  // One call at a time per kernel object. A kernel of a device (runtime/device_memory.h), which
  // reads and writes memory of that device, may return before it is done.
  virtual Status run(const KernelArgs& args) = 0;
  // Waits for all that `run` began.
  virtual Status finish() { return {}; }
  // A kernel that shares code and constants with this one and may run while it does; null where
  // `run` keeps nothing between its calls, so that any number of them may go on at once.
  virtual Result<std::shared_ptr<Kernel>> twin() const {
    return unsupported("its kernels run once at a time");
  }
  // Whether runs of twins wait for one another: they are right at once, but not faster.
  virtual bool twins_take_turns() const { return false; }
  // What another process makes the same kernel of (runtime/saved_kernel.h), or why it cannot.
  virtual Result<SavedKernel> save() const { return unsupported("its kernels cannot be saved"); }
  // The kernel without Collage, or why it cannot be without.
  virtual Result<KernelSource> source() const {
    return unsupported("its kernels are no code of their own");
  }
  virtual size_t workspace_bytes() const { return 0; }
  // Bytes of constants the kernel holds (prepacked), which stream through the caches on each run.
  virtual size_t constant_bytes() const { return 0; }
  virtual ThreadUse thread_use() const { return ThreadUse::kTeam; }
  // Places that save it work; `run` is right wherever each of them lies.
  virtual std::vector<InPlace> in_place() const { return {}; }
};

}  // namespace collage
