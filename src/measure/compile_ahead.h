// Compiling what is to be tried. Where several functions are measured together, or variants that
// were named, their kernels are compiled on all cores before the first of them is tried: generating
// code takes longer than running it a few times, and uses one core. A worker that dies of that
// names nobody; the functions are then measured one by one (worker.h), each kernel compiled by
// itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "measure/measure.h"
#include "runtime/kernel.h"

namespace collage {

// As it is timed: where kernels take turns, over constants of its own. A kernel that reads them in
// place, without packing, would find in the caches what a rival read just before.
Result<std::unique_ptr<Kernel>> compile_to_time(const Function& function, const Variant& variant,
                                                const Target& target, const MeasureTask& task);

class KernelsAhead {
 public:
  // What is given must outlive it, where it is.
  void add(const MeasuredVariant& row, const Function& function, const Target& target,
           const MeasureTask& task);
  // All that were added, on as many threads.
  void compile(int threads, const MeasureHooks& hooks);
  // The row's kernel, or why it has none; nothing where it was not compiled.
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
