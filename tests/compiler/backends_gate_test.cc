// Every backend's kernel of every operator passes the check that measuring does, and leaves room:
// the check is no lottery of rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "backend/backend.h"
#include "backend/offer.h"
#include "backend/targets/backends.h"
#include "ir/text_printer.h"
#include "measure/trial.h"
#include "ops/cases.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

// The smallest case of each operator that has float32 results.
std::map<std::string, Function> smallest_cases() {
  std::map<std::string, Function> smallest;
  std::map<std::string, int64_t> sizes;
  for (const OpCase& op_case : op_cases()) {
    const Function function = build_case(op_case, 3).value().function;
    const TensorType result = function->result_type().leaves()[0];
    const int64_t size = num_elements(result.shape);
    if (result.dtype != DType::kFloat32 || size < 16) continue;
    if (sizes.count(op_case.op) != 0 && size >= sizes[op_case.op]) continue;
    sizes[op_case.op] = size;
    smallest[op_case.op] = function;
  }
  return smallest;
}

class BackendsGate : public ::testing::TestWithParam<const char*> {};

TEST_P(BackendsGate, AcceptsTheirKernels) {
  register_all();
  Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "not available here";
  const Target target{GetParam(), {}, {}};
  const CompileOptions options{2, ""};
  ThreadTeam team(2);
  int accepted = 0;
  double worst = 0, worst_mean = 0;
  std::string worst_of, worst_mean_of;
  for (const auto& [op, function] : smallest_cases()) {
    const auto variants = backend->variants(function, target, options);
    if (!variants.ok() || variants->empty()) continue;
    Result<Subject> subject = Subject::of_function(canonical_text(function), options);
    ASSERT_TRUE(subject.ok()) << op << ": " << subject.status().to_string();
    auto kernel = backend->compile(subject->function(), variants->front(), target, options);
    if (!kernel.ok()) continue;
    Result<Trial> trial = try_kernel(std::move(*kernel), variants->front(), *subject, team);
    EXPECT_TRUE(trial.ok()) << op << ": " << trial.status().to_string();
    if (!trial.ok()) continue;
    ++accepted;
    if (trial->agreement.of_allowed > worst) worst = trial->agreement.of_allowed, worst_of = op;
    if (trial->agreement.mean_of_allowed > worst_mean)
      worst_mean = trial->agreement.mean_of_allowed, worst_mean_of = op;
  }
  fmt::print(
      "{}: {} kernels; at most {:.2f} of the allowed error ({}), by root mean squares {:.2f} "
      "({})\n",
      GetParam(), accepted, worst, worst_of, worst_mean, worst_mean_of);
  EXPECT_GE(accepted, 3);
  EXPECT_LT(worst, 0.7) << worst_of;
  EXPECT_LT(worst_mean, 0.7) << worst_mean_of;
}

INSTANTIATE_TEST_SUITE_P(All, BackendsGate,
                         ::testing::Values("onednn", "openvino", "native", "blas", "reference"),
                         [](const auto& info) { return std::string(info.param); });

// Winograd's among them: with a pixel of 1e5, infinities and NaN beside numbers below 1, outputs of
// other tiles are right.
TEST(ConvolutionsGate, AcceptsEveryVariantWithOutliers) {
  register_all();
  const Expr x = make_var("x", TensorType{{1, 16, 30, 30}, DType::kFloat32});
  const Expr weights =
      make_constant(synthetic_constant(TensorType{{32, 16, 3, 3}, DType::kFloat32}, 3).value());
  const Function function = make_function(
      {x}, make_call("nn.conv2d", {x, weights}, {{"padding", Ints{1, 1, 1, 1}}}).value());
  const CompileOptions options{2, ""};
  ThreadTeam team(2);
  Subject subject = Subject::of_function(canonical_text(function), options).value();
  int in_tiles = 0;
  for (const char* name : {"native", "onednn"}) {
    Backend* backend = find_backend(name);
    if (backend == nullptr || !backend->available().ok()) continue;
    const Target target{name, {}, {}};
    const std::vector<Variant> variants =
        offered_variants(*backend, subject.function(), target, options).value();
    for (const Variant& variant : variants) {
      auto kernel = backend->compile(subject.function(), variant, target, options).value();
      ASSERT_TRUE(subject.knows_ends(variant));
      const Result<Trial> trial = try_kernel(std::move(kernel), variant, subject, team);
      EXPECT_TRUE(trial.ok()) << name << " " << variant.name << ": " << trial.status().to_string();
      in_tiles += variant.rounding.sums > 1;
    }
  }
  if (find_backend("native") != nullptr) {
    EXPECT_GT(in_tiles, 0);
  }
}

}  // namespace
}  // namespace collage
