#include "backend/offer.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"
#include "runtime/core_team.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// Calls a backend with the options of a target's kernels, and as many threads.
template <typename Call>
auto with_threads_of(const Target& target, const CompileOptions& options, const Call& call) {
  const Cores cores = target.cores();
  if (cores.empty()) return call(options);
  CompileOptions own = options;
  own.threads = cores.count();
  const TeamScope scope(own.threads);
  return call(own);
}

}  // namespace

Result<bool> may_lose_nan(const Backend& backend, const Function& function) {
  const std::vector<std::string_view>& operators = backend.traits().loses_nan;
  if (operators.empty()) return false;
  const Function flat = TRY(inline_calls(function));
  const std::vector<Expr> nodes = post_order(flat->body);
  return std::any_of(nodes.begin(), nodes.end(), [&](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr &&
           std::find(operators.begin(), operators.end(), call->op->name) != operators.end();
  });
}

Result<std::vector<Variant>> offered_variants(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options) {
  std::vector<Variant> variants =
      TRY(with_threads_of(target, options, [&](const CompileOptions& own) {
        return backend.variants(function, target, own);
      }));
  std::erase_if(variants, [&](const Variant& variant) {
    return variant.rounding.limit() > options.rounding;
  });
  if (TRY(may_lose_nan(backend, function)))
    for (Variant& variant : variants) variant.loses_nan = true;
  return variants;
}

Result<ScheduleSpace> offered_schedules(const Backend& backend, const Function& function,
                                        const Target& target, const CompileOptions& options) {
  return with_threads_of(target, options, [&](const CompileOptions& own) {
    return backend.schedule_space(function, target, own);
  });
}

Result<std::unique_ptr<Kernel>> compile_kernel(const Backend& backend, const Function& function,
                                               const Variant& variant, const Target& target,
                                               const CompileOptions& options) {
  std::unique_ptr<Kernel> kernel =
      TRY(with_threads_of(target, options, [&](const CompileOptions& own) {
        return backend.compile(function, variant, target, own);
      }));
  if (const Cores cores = target.cores(); !cores.empty())
    kernel = std::make_unique<CoreKernel>(std::move(kernel), cores);
  return kernel;
}

Result<std::vector<Variant>> variants_to_cost(const Backend& backend, const Function& function,
                                              const Target& target, const CompileOptions& options) {
  std::vector<Variant> variants = TRY(offered_variants(backend, function, target, options));
  if (options.rounding == RoundingLimit::kAny)
    std::erase_if(variants, [](const Variant& variant) { return !variant.lowered(); });
  return variants;
}

}  // namespace collage
