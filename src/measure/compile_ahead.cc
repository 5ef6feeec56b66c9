#include "measure/compile_ahead.h"

#include <atomic>

#include "backend/offer.h"
#include "ir/visitor.h"
#include "measure/guarded_call.h"
#include "runtime/shared_constants.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

Result<Function> with_own_constants(const Function& function) {
  Rewriter copies([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* constant = as<ConstantNode>(rebuilt);
    return constant == nullptr ? rebuilt
                               : make_constant(constant->value.clone(), constant->origin());
  });
  return copies.rewrite(function);
}

}  // namespace

Result<std::unique_ptr<Kernel>> compile_to_time(const Function& function, const Variant& variant,
                                                const Target& target, const MeasureTask& task) {
  const ConstantsApart apart;
  const bool turns = task.cache == CacheState::kStreaming && task.times();
  return compile_kernel(*find_backend(target.kind),
                        turns ? TRY(with_own_constants(function)) : function, variant, target,
                        task.options);
}

void KernelsAhead::add(const MeasuredVariant& row, const Function& function, const Target& target,
                       const MeasureTask& task) {
  job_of_[&row] = jobs_.size();
  jobs_.push_back({&row, &function, target, &task});
}

void KernelsAhead::compile(int threads, const MeasureHooks& hooks) {
  std::atomic<size_t> next{0};
  run_on_new_threads(threads, [&](int) {
    const TeamScope scope(threads);  // kernels are divided among as many as run them
    for (size_t j = next++; j < jobs_.size(); j = next++) {
      Job& job = jobs_[j];
      job.kernel = guarded(hooks, [&] {
        return compile_to_time(*job.function, job.row->variant, job.target, *job.task);
      });
      if (hooks.beats != nullptr) hooks.beats->fetch_add(1);
    }
  });
}

std::optional<Result<std::unique_ptr<Kernel>>> KernelsAhead::take(const MeasuredVariant& row) {
  const auto it = job_of_.find(&row);
  return it == job_of_.end() ? std::nullopt : std::move(jobs_[it->second].kernel);
}

}  // namespace collage
