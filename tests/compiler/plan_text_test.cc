// A plan's text is read back with the plan's code, as it was printed or changed.
#include "compiler/plan_text.h"

#include <gmock/gmock.h>

#include "compiler/given_model.h"
#include "runtime/executor.h"

namespace collage::testing {
namespace {

using ::testing::HasSubstr;

// Two kernels that do not depend on each other, and one that does.
constexpr const char* kThree = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(16), float32], %y: Tensor[(16), float32]) {
  %0 = fn (%p: Tensor[(16), float32], Primitive=1) { exp(%p) };
  %1 = fn (%p: Tensor[(16), float32], Primitive=1) { tanh(%p) };
  %2 = fn (%p: Tensor[(16), float32], %q: Tensor[(16), float32], Primitive=1) { subtract(%p, %q) };
  %3 = %0(%x);
  %4 = %1(%y);
  %2(%3, %4)
})";

class PlanText : public GivenModel {
 protected:
  PlanText() : GivenModel(kThree) { options_.targets = {"native"}; }
  void SetUp() override {
    GivenModel::SetUp();
    Result<Program> program = Program::compile(model_of(given_), options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    plan_ = program->impl().plan;
    text_ = to_text(*plan_);
  }

  std::string changed(const std::string& from, const std::string& to) const {
    std::string text = text_;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }
  std::string refusal(const std::string& from, const std::string& to) const {
    return parse_plan(changed(from, to), *plan_, 1).status().to_string();
  }
  // What the plan of that text gives first.
  float result(const std::string& text) const {
    const Result<std::shared_ptr<const Plan>> plan = parse_plan(text, *plan_, 1);
    EXPECT_TRUE(plan.ok()) << plan.status().to_string() << text;
    if (!plan) return 0;
    std::vector<Tensor> inputs, outputs(1);
    for (const float value : {1.0f, 0.5f}) {
      inputs.push_back(Tensor::zeros(DType::kFloat32, {16}));
      inputs.back().data<float>()[0] = value;
    }
    Result<Executor> executor = Executor::create(*plan, 1);
    EXPECT_TRUE(executor->run(inputs, outputs).ok());
    return outputs[0].data<float>()[0];
  }

  std::shared_ptr<const Plan> plan_;
  std::string text_;
};

TEST_F(PlanText, IsReadBackAndChangesWhatRuns) {
  ASSERT_EQ(text_, R"(plan {
  arena 128;
  %0: Tensor[(16), float32] = input 0;
  %1: Tensor[(16), float32] = input 1;
  %2: Tensor[(16), float32] = arena 0;
  %3: Tensor[(16), float32] = arena 64;
  %4: Tensor[(16), float32] = output 0;
  native_call(%0) -> %2;
  native_call_1(%1) -> %3;
  native_call_2(%2, %3) -> %4;
}
)");
  EXPECT_EQ(to_text(*parse_plan(text_, *plan_, 1).value()), text_);
  const float exp = std::exp(1.0f), tanh = std::tanh(0.5f);
  EXPECT_NEAR(result(text_), exp - tanh, 1e-5);
  EXPECT_NEAR(result(changed("(%2, %3)", "(%3, %2)")), tanh - exp, 1e-5);
  // Another order, an arena that is larger and laid out otherwise, a call twice.
  const std::string calls = "  native_call(%0) -> %2;\n  native_call_1(%1) -> %3;\n";
  EXPECT_NEAR(result(changed(calls, "  native_call_1(%1) -> %3;\n  native_call(%0) -> %2;\n")),
              exp - tanh, 1e-5);
  std::string larger = changed("arena 128", "arena 4096");
  larger.replace(larger.find("arena 64"), 8, "arena 1024");
  EXPECT_NEAR(result(larger), exp - tanh, 1e-5);
  EXPECT_NEAR(result(changed("native_call_1(%1) -> %3;", "native_call(%1) -> %3;")),
              exp - std::exp(0.5f), 1e-5);
}

TEST_F(PlanText, IsRewrittenBeforeItRuns) {
  std::string seen;
  options_.rewrite_plan = [&](const std::string& text) {
    seen = text;
    return changed("(%2, %3)", "(%3, %2)");
  };
  Result<Program> program = Program::compile(model_of(given_), options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(seen, text_);
  EXPECT_EQ(to_text(*program->impl().plan), changed("(%2, %3)", "(%3, %2)"));
  Tensor one = Tensor::zeros(DType::kFloat32, {16}), none = Tensor::zeros(DType::kFloat32, {16});
  one.data<float>()[0] = 1;
  const auto outputs = program->run({one, none});
  ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
  EXPECT_NEAR((*outputs)[0].data<float>()[0], -std::exp(1.0f), 1e-5);
  options_.rewrite_plan = [&](const std::string&) { return changed("-> %2", "-> %7"); };
  EXPECT_THAT(Program::compile(model_of(given_), options_).status().to_string(),
              HasSubstr("the plan as it was rewritten"));
}

TEST_F(PlanText, IsChecked) {
  EXPECT_THAT(refusal("arena 64", "arena 128"), HasSubstr("buffer 3: it lies outside the arena"));
  EXPECT_THAT(refusal("-> %2", "-> %0"), HasSubstr("it writes an input or a constant"));
  EXPECT_THAT(refusal("-> %2", "-> %7"), HasSubstr("outputs"));
  EXPECT_THAT(refusal("%2: Tensor[(16)", "%2: Tensor[(8)"), HasSubstr("has 32 bytes"));
  EXPECT_THAT(refusal("native_call_1", "native_sqrt"),
              HasSubstr("line 9, column 3: there is no kernel native_sqrt"));
  EXPECT_THAT(refusal("%3: Tensor", "%5: Tensor"), HasSubstr("numbered in order"));
  EXPECT_THAT(refusal("= arena 64", "as \"float32:aBcd16b\" = arena 64"),
              HasSubstr("no kernel uses the encoding float32:aBcd16b"));
  EXPECT_THAT(refusal("= arena 64", "= heap 64"), HasSubstr("there is no place 'heap'"));
  EXPECT_THAT(refusal("= arena 64", "= constant 0"), HasSubstr("there is no constant 0"));
  EXPECT_THAT(refusal("arena 128;", "arena 128 on \"gpu:0\";"),
              HasSubstr("no kernel uses memory of gpu:0"));
}

}  // namespace
}  // namespace collage::testing
