// Every operator's cases that the backend accepts against the interpreter, with NaN too where it
// promises to keep that; what it refuses carries a reason, and it refuses all cases of no other
// operators than those listed here.
#include <gmock/gmock.h>

#include <set>

#include "backend/casts_at_limits.h"
#include "backend/check.h"
#include "backend/far_places.h"
#include "backend/openvino/run.h"
#include "backend/openvino/translate.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "runtime/thread_team.h"

namespace collage::test {
namespace {

// Those of which it takes no case.
const std::set<std::string> kRefused = {"left_shift",
                                        "right_shift",
                                        "random.normal",
                                        "random.run",
                                        "random.uniform",
                                        "reinterpret",
                                        "vision.roi_align",
                                        "nn.softplus",
                                        "mod",
                                        "floor_mod",
                                        "qnn.quantize",
                                        "nn.packed_dense",
                                        "shape_of",
                                        "match_size",
                                        "nonzero",
                                        "unique",
                                        "vision.non_max_suppression"};

class OpTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OpTest, MatchesTheInterpreterOrRefuses) {
  register_all_ops();
  size_t taken = 0;
  std::string why;
  for (const OpCase& op_case : op_cases(GetParam())) {
    SCOPED_TRACE(op_case.to_string());
    auto built = build_case(op_case, 7);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const Target target{"openvino", {}, {}};
    const CompileOptions options{2, ""};
    const auto variants = openvino_backend().variants(built->function, target, options);
    if (!variants.ok()) {
      EXPECT_EQ(variants.status().code(), ErrorCode::kUnsupported) << variants.status().to_string();
      EXPECT_GT(variants.status().message().size(), 5U);
      why = variants.status().message();
      continue;
    }
    ++taken;
    auto expected = interpret(built->function, built->inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();
    auto actual = run_openvino(built->function, built->inputs);
    if (!actual.ok()) {
      ADD_FAILURE() << actual.status().to_string();
      continue;
    }
    for (size_t i = 0; i < expected->size(); ++i)
      EXPECT_EQ(difference((*actual)[i], (*expected)[i]), "") << "result " << i;
    auto kernel =
        openvino_backend().compile(built->function, variants->at(0), target, options).value();
    const TeamScope team(options.threads);
    testing::check_nan(openvino_backend(), *kernel, built->function, variants->at(0),
                       built->inputs);
  }
  const bool known = kRefused.count(GetParam()) > 0;
  EXPECT_EQ(taken == 0, known) << "takes " << taken << " cases: " << why;
  if (known) GTEST_SKIP() << "openvino refuses every case of the operator, as it is known to";
}

std::vector<std::string> ops_with_cases() {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) names.insert(op_case.op);
  return {names.begin(), names.end()};
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}

// Those that it takes; others differ by the types.
TEST(Casts, AtTheLimitsOfTypesAreTheReferences) {
  register_all_ops();
  int taken = 0;
  for (const testing::CastAtLimits& cast : testing::casts_at_limits()) {
    SCOPED_TRACE(cast.name);
    if (!openvino::can_translate(*as<CallNode>(cast.function->body)).ok()) continue;
    ++taken;
    const auto expected = interpret(cast.function, {&cast.input, 1});
    const auto actual = run_openvino(cast.function, {&cast.input, 1});
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().to_string();
    EXPECT_EQ(difference((*actual)[0], (*expected)[0]), "");
  }
  EXPECT_GE(taken, 15);  // of float32 and integers of 8, 32 and 64 bits
}

TEST(Places, BetweenPixelsMayBeAnything) {
  for (const testing::FarPlaces& c : testing::far_places()) {
    SCOPED_TRACE(c.name);
    const auto expected = interpret(c.function, c.inputs);
    const auto actual = run_openvino(c.function, c.inputs);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().to_string();
    EXPECT_EQ(difference((*actual)[0], (*expected)[0]), "");
  }
}

// Equal elements keep their order, and so large numbers of them are left to others.
TEST(TopK, IsTakenWhereKeepingTheOrderIsCheap) {
  register_all_ops();
  const auto topk = [](int64_t extent, int64_t k) {
    const Expr x = make_var("x", TensorType{{2, extent}, DType::kFloat32});
    return make_function({x}, *make_call("topk", {x}, {{"k", k}}));
  };
  std::vector<Tensor> ties = {Tensor::zeros(DType::kFloat32, {2, 1000})};
  for (int64_t i = 0; i < 2000; ++i) ties[0].data<float>()[i] = static_cast<float>(i % 3);
  const Function few = topk(1000, 8);
  const auto expected = interpret(few, ties), actual = run_openvino(few, ties);
  ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().to_string();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(difference((*actual)[i], (*expected)[i]), "");
  const auto variants_of = [](const Function& function) {
    return openvino_backend().variants(function, Target{"openvino", {}, {}}, CompileOptions{2, ""});
  };
  EXPECT_TRUE(variants_of(topk(64, 60)).ok());
  EXPECT_EQ(variants_of(topk(1000, 9)).status().code(), ErrorCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(All, OpTest, ::testing::ValuesIn(ops_with_cases()), test_name);

}  // namespace
}  // namespace collage::test
