#include "backend/targets/each_target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "backend/check.h"
#include "backend/offer.h"
#include "backend/targets/backends.h"
#include "measure/staged_kernel.h"
#include "runtime/thread_team.h"
#if COLLAGE_WITH_NATIVE
#include "backend/native/codegen/vector_width.h"
#endif

namespace collage::testing {

namespace {

constexpr int kThreads = 2;
const CompileOptions kOptions{kThreads, ""};

Result<std::shared_ptr<Kernel>> compiled(const Backend& backend, const Target& target,
                                         const Function& function, const Variant& variant) {
  std::vector<TensorType> inputs;
  for (const Expr& param : function->params) inputs.push_back(param->tensor_type());
  return StagedKernel::around(TRY(backend.compile(function, variant, target, kOptions)), variant,
                              inputs, function->result_type().leaves(), target.device);
}

}  // namespace

void for_each_target(const std::function<void(const Backend&, const Target&)>& check) {
  register_all();
  for (Backend* backend : all_backends()) {
    if (backend->traits().is_host || !backend->available().ok()) continue;
    if (!backend->traits().by_default) continue;
    const Target target{backend->name(), {}, backend->traits().devices.at(0)};
    check(*backend, target);
#if COLLAGE_WITH_NATIVE
    if (backend->name() != "native") continue;
    const int other = native::vector_width() == 16 ? 8 : 16;
    SCOPED_TRACE(fmt::format("schedules for vectors of {}", other));
    const native::AssumedVectorWidth assumed(other);
    check(*backend, target);
#endif
  }
}

void run_variants(const Backend& backend, const Target& target, const Function& function,
                  const std::vector<std::vector<Tensor>>& lists, const CheckRun& check) {
  const auto variants = offered_variants(backend, function, target, kOptions);
  if (!variants.ok()) return;
  for (const Variant& variant : *variants) {
    SCOPED_TRACE(fmt::format("{}: {}", backend.name(), variant.to_string()));
    auto kernel = compiled(backend, target, function, variant);
    EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
    if (!kernel.ok()) continue;
    const TeamScope team(kThreads);
    for (const std::vector<Tensor>& inputs : lists) {
      const std::vector<Tensor> got = run_guarded(**kernel, function, variant, inputs);
      check(variant, inputs, got.at(0));
    }
  }
}

}  // namespace collage::testing
