// Compiles kernels before they are tried. If several functions are measured together, or variants
// were named, their kernels are compiled on all cores first: generating code takes longer than
// running it a few times, and uses one core. If a worker dies of that, the culprit is unknown; the
// functions are then measured one by one (worker.h), each kernel compiled by itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "measure/measure.h"
#include "runtime/kernel.h"

namespace collage {

// Compiles a kernel as it is timed: over constants of its own, if kernels take turns. A kernel that
// reads constants in place, without packing, would find in the caches what a rival read just
// before.
Result<std::unique_ptr<Kernel>> compile_to_time(const Function& function, const Variant& variant,
                                                const Target& target, const MeasureTask& task);

class KernelsAhead {
 public:
  // References must stay valid for the lifetime of this object.
  void add(const MeasuredVariant& row, const Function& function, const Target& target,
           const MeasureTask& task);
  // Compiles all that were added, on that many threads.
  void compile(int threads, const MeasureHooks& hooks);
  // Returns the row's kernel, or why it has none; none if it was not compiled.
  std::optional<Result<std::unique_ptr<Kernel>>> take(const MeasuredVariant& row);

 private:
  struct Job {
    const MeasuredVariant* row;
    const Function* function;
    Target target;
    const MeasureTask* task;
    std::optional<Result<std::unique_ptr<Kernel>>> kernel = {};
  };
  std::vector<Job> jobs_;
  std::map<const MeasuredVariant*, size_t> job_of_;
};

}  // namespace collage
