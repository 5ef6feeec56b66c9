// Trying one compiled kernel before it is believed: it runs twice, on different guarded buffers
// with different leftovers in outputs and workspace, and both results must agree with the
// reference; and once more on inputs some of which are infinite, NaN, denormal, the largest numbers
// there are, or far larger than all others. What survives is timed on other buffers, of ordinary
// memory.
//
// It sees: wrong values, NaN and infinity in the wrong places, elements and padding that were not
// written, results that depend on the workspace's contents or on an earlier run, writes beside
// outputs, workspace and inputs; accesses further off, and writes into inputs, kill the process
// (see guarded_buffer.h).
#pragma once

#include <memory>
#include <vector>

#include "measure/subject.h"
#include "runtime/kernel.h"
#include "runtime/thread_team.h"

namespace collage {

struct Trial {
  std::shared_ptr<Kernel> kernel;
  std::vector<std::shared_ptr<GuardedBuffer>> inputs;
  std::vector<GuardedBuffer> outputs;
  GuardedBuffer workspace;
  bool repeatable = true;  // both runs gave the same bits
  size_t digest = 0;       // of the verified outputs
  Agreement agreement;     // of the first run
  // What it made of NaN and infinities, as the variant's fields of these names.
  bool loses_nan = false, spreads_nan = false;
};

// One run, with the team parked where the kernel brings its own threads. Backends promise not to
// throw; what one throws all the same, but for std::bad_alloc, becomes an error.
Status run_kernel(Kernel& kernel, const KernelArgs& args, ThreadTeam& team);
// kVerification: it computes wrongly or writes where it must not; other errors are the kernel's
// own. Throws nothing but std::bad_alloc.
Result<Trial> try_kernel(std::shared_ptr<Kernel> kernel, const Variant& variant, Subject& subject,
                         ThreadTeam& team);
// After many more runs, the last one's results having been copied into the trial's outputs: whether
// it was right as well.
Status check_after_timing(const Trial& trial, const Variant& variant, const Subject& subject);

}  // namespace collage
