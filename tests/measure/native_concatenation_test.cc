// Native's concatenations of odd widths on guarded buffers: their vectors do not fit the rows, and
// a schedule that rounds up would write beyond the tensor.
#include <gtest/gtest.h>

#include "measure/trial.h"
#include "planted_kernel.h"
#if COLLAGE_WITH_NATIVE
#include "backend/native/native_backend.h"

namespace collage {
namespace {

void try_all_variants(const std::vector<int64_t>& widths, int64_t rows, bool with_relu) {
  testing::register_host();
  static const std::unique_ptr<Backend> backend = make_native_backend();
  std::vector<Expr> params, parts;
  for (int64_t width : widths) {
    params.push_back(make_var("x", TensorType{{rows, width}, DType::kFloat32}));
    parts.push_back(with_relu ? make_call("nn.relu", {params.back()}).value() : params.back());
  }
  Function function = make_function(
      params, make_call("concatenate", {make_tuple(parts)}, {{"axis", int64_t{1}}}).value());
  const Target target{"native", {}, {}};
  const CompileOptions options{2, ""};
  Subject subject = testing::subject_of(function);
  ThreadTeam team(2);
  Result<std::vector<Variant>> variants = backend->variants(function, target, options);
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  for (const Variant& variant : *variants) {
    Result<std::unique_ptr<Kernel>> kernel = backend->compile(function, variant, target, options);
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    Result<Trial> trial = try_kernel(std::move(kernel).value(), variant, subject, team);
    EXPECT_TRUE(trial.ok()) << variant.to_string() << ": " << trial.status().to_string();
  }
}

TEST(NativeConcatenation, OddWidthsStayInsideTheTensor) {
  for (int64_t width : {1, 3, 7, 9, 15, 17, 31, 33}) try_all_variants({width, width + 2}, 3, false);
}

TEST(NativeConcatenation, ThreeOddPartsWithAFusedOperator) {
  for (int64_t width : {1, 5, 13, 21}) try_all_variants({width, 3, width + 4}, 1, true);
}

}  // namespace
}  // namespace collage
#endif
