// The checks that other tests rely on, held to what they must find.
#include "backend/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <cmath>
#include <limits>

namespace collage::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor of(float first) { return Tensor::from<float>({3}, {first, 1, -2}); }

void expect_refused(float expected, float got, const Tolerance& tolerance = {}) {
  static float e, g;  // what is given to EXPECT_NONFATAL_FAILURE sees no locals
  static Tolerance t;
  e = expected, g = got, t = tolerance;
  EXPECT_NONFATAL_FAILURE(expect_close(of(e), of(g), t), "largest error");
}

TEST(ExpectClose, InfinitiesAreExact) {
  expect_close(of(kInfinity), of(kInfinity));
  expect_close(of(-kInfinity), of(-kInfinity));
  for (const float got : {-kInfinity, 3.4e38f, 0.0f, NAN}) expect_refused(kInfinity, got);
  expect_refused(1, kInfinity);
  expect_refused(-kInfinity, -3.4e38f, {.mean = 1, .largest = 1, .element = 1});
}

TEST(ExpectClose, NaNIsWhereItIsExpected) {
  expect_close(of(NAN), of(NAN));
  expect_refused(NAN, 1);
  expect_refused(1, NAN);
}

TEST(ExpectClose, ErrorsAreHeldToTheirLimits) {
  expect_close(of(1), of(1 + 1e-5f));
  expect_refused(1, 1 + 1e-4f);
  expect_close(of(1), of(1.5f), {.mean = 0, .largest = 0.3, .element = 0});
  expect_refused(1, 1.7f, {.mean = 0, .largest = 0.3, .element = 0});
}

// Takes relu alone, and gives what it is asked to.
class Fake : public Backend {
 public:
  explicit Fake(float error)
      : Backend("fake", [] { return BackendTraits{.version = "1"}; }), error_(error) {}
  PartitionRulePtr partition_rule(const Target&) const override { return nullptr; }
  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    const auto* call = as<CallNode>(function->body);
    if (call->op->name != "nn.relu" || call->tensor_type().dtype != DType::kFloat32)
      return unsupported("fake: only nn.relu");
    return std::vector<Variant>{Variant::plain("fake", function)};
  }
  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant&, const Target&,
                                          const CompileOptions&) const override {
    return std::make_unique<Relu>(num_elements(function->body->tensor_type().shape), error_);
  }

 private:
  struct Relu : Kernel {
    Relu(int64_t size, float error) : size(size), error(error) {}
    Status run(const KernelArgs& args) override {
      const auto* in = static_cast<const float*>(args.inputs[0]);
      auto* out = static_cast<float*>(args.outputs[0]);
      for (int64_t i = 0; i < size; ++i) out[i] = std::max(in[i], 0.0f) + error;
      return {};
    }
    int64_t size;
    float error;
  };
  float error_;
};

const Target kTarget{"fake", {}, {}};

void check_fake(const std::string& op, const std::set<std::string>& refused, float error = 0) {
  const Fake fake(error);
  check_operator(fake, kTarget, op, refused,
                 [&](const Function& function, const std::vector<Tensor>& inputs) {
                   check_variants(fake, kTarget, function, inputs);
                 });
}

TEST(CheckOperator, RunsTheCasesThatTheBackendTakes) {
  check_fake("nn.relu", {"abs"});
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(&failures);
    check_fake("nn.relu", {"abs"}, 0.01f);
  }
  EXPECT_GT(failures.size(), 2);
}

TEST(CheckOperator, FindsABackendThatRefusesEveryCase) {
  EXPECT_NONFATAL_FAILURE(check_fake("abs", {"exp"}),
                          "takes 0 of the 4 cases of abs: fake: only nn.relu");
}

TEST(CheckOperator, FindsAnOperatorThatIsNoLongerRefused) {
  ::testing::TestPartResultArray results;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(&results);
    check_fake("nn.relu", {"nn.relu"});
  }
  ASSERT_EQ(results.size(), 2);
  EXPECT_THAT(results.GetTestPartResult(0).message(), ::testing::HasSubstr("takes 3 of the 4"));
  EXPECT_TRUE(results.GetTestPartResult(1).skipped());
}

}  // namespace
}  // namespace collage::testing
