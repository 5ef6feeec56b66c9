// Tries one compiled kernel: it runs twice, on different guarded buffers with different initial
// contents of outputs and workspace, and both results must agree with the reference; and once more
// on inputs some of which are infinite, NaN, denormal, the largest numbers, or far larger than all
// others. A correct kernel is timed on other buffers, of ordinary memory.
//
// A trial detects: wrong values, NaN and infinity in the wrong places, elements and padding that
// were not written, results that depend on the workspace's contents or on an earlier run, writes
// beside outputs, workspace and inputs; accesses further off, and writes into inputs, kill the
// process (see guarded_buffer.h).
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
  // Both runs gave the same bits; false where one took long, and is compared with nothing.
  bool repeatable = true;
  size_t digest = 0;    // of the verified outputs
  Agreement agreement;  // of the first run
  // What the kernel did with NaN and infinities, as the variant's fields of these names.
  bool loses_nan = false, spreads_nan = false;
};

// Runs a kernel once, with the team parked if it brings its own threads. Backends promise not to
// throw; an exception other than std::bad_alloc becomes an error.
Status run_kernel(Kernel& kernel, const KernelArgs& args, ThreadTeam& team);
// kVerification: it computes wrongly or writes outside its outputs; other errors are the kernel's
// own. Throws nothing but std::bad_alloc.
Result<Trial> try_kernel(std::shared_ptr<Kernel> kernel, const Variant& variant, Subject& subject,
                         ThreadTeam& team);
// Checks the last of many more runs, whose results were copied into the trial's outputs.
Status check_after_timing(const Trial& trial, const Variant& variant, const Subject& subject);

}  // namespace collage
