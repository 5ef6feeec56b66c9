// Operators defined by programs over symbols: what follows from the definition, and what is
// refused.
#include "tensor_program/defined_operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "tensor_program/call.h"

namespace collage::tensor_program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Defined : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_all_ops();
    if (find_op(kCallOp) == nullptr) register_call_ops();
    for (const OperatorDefinition& definition : definitions()) {
      const Status defined = define(definition);
      EXPECT_TRUE(defined.ok()) << defined.to_string();
    }
  }

  static std::vector<OperatorDefinition> definitions() {
    return {
        {.name = "test.swiglu", .onnx = "com.example::SwiGlu", .program = R"(program (n, d) {
               param X: float32[n, 2 * d];
               result Y[i:n, j:d] = X[i, j] / (1.0f + exp(-X[i, j])) * X[i, d + j];
             })"},
        {.name = "test.window", .program = R"(program (n, size: int64 = 3, scale: float32 = -0.5) {
               param X: float32[n];
               result Y[i:n - size + 1] = sum(k:size) X[i + k] * scale;
             })"},
        {.name = "test.solved", .program = R"(program (a, b) {
               param X: float32[2 * a + b, b];
               result Y[i:a] = X[2 * i + b, b - 1];
             })"},
        {.name = "test.split_at",
         .program = R"(program (n, at: int64) {
               param X: float32[n];
               result A[i:at] = X[i];
               result B[i:n - at] = X[at + i];
             })",
         .cases = {{{"n", 5}, {"at", 2}}}}};
  }
};

Result<Expr> called(const std::string& op, const Shape& shape, Attrs attrs = {}) {
  return make_call(op, {make_var("x", TensorType{shape, DType::kFloat32})}, std::move(attrs));
}

std::string refused(const std::string& op, const Shape& shape, Attrs attrs = {}) {
  const Result<Expr> call = called(op, shape, std::move(attrs));
  return call ? "" : call.status().to_string();
}

std::vector<float> computed(const Function& function, const Tensor& input) {
  const Result<std::vector<Tensor>> results = interpret(function, std::vector<Tensor>{input});
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  if (!results.ok()) return {};
  const auto values = results->at(0).values<float>();
  return {values.begin(), values.end()};
}

TEST_F(Defined, ShapesDecideExtents) {
  EXPECT_EQ((*called("test.swiglu", {4, 6}))->tensor_type().shape, (Shape{4, 3}));
  EXPECT_EQ((*called("test.solved", {7, 3}))->tensor_type().shape, (Shape{2}));
  EXPECT_EQ((*called("test.window", {7}))->tensor_type().shape, (Shape{5}));
  EXPECT_EQ((*called("test.window", {7}, {{"size", int64_t{7}}}))->tensor_type().shape, (Shape{1}));
  EXPECT_EQ(
      (*called("test.split_at", {7}, {{"at", int64_t{3}}}))->type().fields()[1].tensor().shape,
      (Shape{4}));
}

TEST_F(Defined, ShapesThatDoNotFitAreRefused) {
  EXPECT_THAT(refused("test.swiglu", {4, 5}),
              HasSubstr("test.swiglu: dimension 1 of X is 5, not 2 * d with n = 4"));
  EXPECT_THAT(refused("test.swiglu", {4}),
              HasSubstr("X is Tensor[(4), float32], not float32[n, 2 * d]"));
  EXPECT_THAT(refused("test.solved", {6, 3}),
              HasSubstr("dimension 0 of X is 6, not 2 * a + b with b = 3"));
  EXPECT_THAT(refused("test.window", {2}), HasSubstr("axis i of extent 0"));
  EXPECT_THAT(refused("test.split_at", {4}), HasSubstr("at"));
  EXPECT_THAT(refused("test.split_at", {4}, {{"at", int64_t{6}}}),
              HasSubstr("no extent n - at with at = 6, n = 4"));
  EXPECT_THAT(refused("test.window", {4}, {{"size", int64_t{1} << 40}}),
              HasSubstr("1099511627776"));
}

TEST_F(Defined, TheProgramIsTheReference) {
  const Expr x = make_var("x", TensorType{{1, 4}, DType::kFloat32});
  const Function swiglu = make_function({x}, *make_call("test.swiglu", {x}));
  const auto gate = [](float a, float b) { return a / (1 + std::exp(-a)) * b; };
  const std::vector<float> values = computed(swiglu, Tensor::from<float>({1, 4}, {1, -2, 3, 4}));
  ASSERT_EQ(values.size(), 2U);
  EXPECT_NEAR(values[0], gate(1, 3), 1e-6);
  EXPECT_NEAR(values[1], gate(-2, 4), 1e-6);

  const Expr y = make_var("y", TensorType{{4}, DType::kFloat32});
  const Tensor four = Tensor::from<float>({4}, {1, 2, 3, 4});
  EXPECT_THAT(computed(make_function({y}, *make_call("test.window", {y})), four),
              ElementsAre(-3, -4.5));
  const Attrs attrs{{"size", int64_t{2}}, {"scale", 2.0}};
  EXPECT_THAT(computed(make_function({y}, *make_call("test.window", {y}, attrs)), four),
              ElementsAre(6, 10, 14));
}

TEST_F(Defined, CallsAreWrittenInTextLikeOthersAndBecomeCallsOfPrograms) {
  const std::string text =
      "fn (%x: Tensor[(2, 6), float32]) {\n  test.window(reshape(test.swiglu(%x), newshape=[6]), "
      "scale=2f)\n}";
  const Function before = parse_function(text).value();
  EXPECT_THAT(to_text(before), HasSubstr("test.window(%1, scale=2f)"));
  const Function after = expand_defined(before).value();
  EXPECT_THAT(to_text(after), HasSubstr("param X: float32[2, 6]"));
  EXPECT_THAT(to_text(after), HasSubstr("sum(k:3) X[i + k] * 2.0f"));
  EXPECT_THAT(to_text(after), ::testing::Not(HasSubstr("test.")));
  EXPECT_EQ(expand_defined(after).value(), after);
  Tensor x = Tensor::empty(DType::kFloat32, {2, 6});
  for (int64_t i = 0; i < 12; ++i) x.data<float>()[i] = static_cast<float>(i % 5) - 2;
  EXPECT_EQ(computed(before, x), computed(after, x));
}

TEST_F(Defined, CasesComputeAndAreOfSeveralSizes) {
  for (const OperatorDefinition& definition : definitions()) {
    const Result<std::vector<OpCase>> cases = cases_of(*find_defined(definition.name));
    ASSERT_TRUE(cases.ok()) << cases.status().to_string();
    EXPECT_GE(cases->size(), definition.cases.empty() ? 2U : 1U);
    for (const OpCase& op_case : *cases) {
      SCOPED_TRACE(op_case.to_string());
      const OpCaseFunction built = build_case(op_case, 3).value();
      const Function expanded = expand_defined(built.function).value();
      EXPECT_EQ(computed(built.function, built.inputs[0]), computed(expanded, built.inputs[0]));
    }
  }
}

TEST_F(Defined, NodesAreFoundByDomainAndName) {
  const DefinedOperator* found = find_defined_node("com.example::SwiGlu");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->definition.name, "test.swiglu");
  EXPECT_EQ(find_defined_node("::SwiGlu"), nullptr);
  EXPECT_EQ(find_defined_node("com.example::"), nullptr);
}

TEST_F(Defined, DefinitionsThatCannotBeAreRefused) {
  const auto wrong = [](const std::string& program, std::string name = "test.wrong") {
    const Status status = define({.name = std::move(name), .program = program});
    EXPECT_FALSE(status.ok());
    return status.to_string();
  };
  const std::string body = " { param X: float32[n]; result Y[i:n] = X[i]; }";
  EXPECT_THAT(wrong("program (n)" + body, "wrong"), HasSubstr("'wrong' is no operator's name"));
  EXPECT_THAT(wrong("program (n)" + body, "test."), HasSubstr("is no operator's name"));
  EXPECT_THAT(wrong("program (n)" + body, "nn.relu"), HasSubstr("operator nn.relu exists already"));
  EXPECT_THAT(wrong("program (n)" + body, "test.swiglu"),
              HasSubstr("operator test.swiglu is defined already"));
  EXPECT_THAT(wrong("program" + body), HasSubstr("'{' where '(' should stand"));
  EXPECT_THAT(wrong("program ()" + body),
              HasSubstr("'n' in an extent is neither an extent nor of type int64"));
  EXPECT_THAT(wrong("program (n, m)" + body), HasSubstr("no parameter's shape decides m"));
  EXPECT_THAT(wrong("program (n, m) { param X: float32[n * m]; result Y[i:n] = X[i]; }"),
              HasSubstr("no parameter's shape decides n"));
  EXPECT_THAT(wrong("program (n) { param X: float32[n / 2]; result Y[i:n] = X[i]; }"),
              HasSubstr("some dimension has to be n, or linear in it"));
  EXPECT_THAT(wrong("program (n, a: float32) { param X: float32[n * a]; result Y[i:n] = X[i]; }"),
              HasSubstr("'a' in an extent is neither an extent nor of type int64"));
  EXPECT_THAT(wrong("program (n, i)" + body), HasSubstr("'i' is a symbol already"));
  EXPECT_THAT(wrong("program (n, n)" + body), HasSubstr("'n' is a symbol already"));
  EXPECT_THAT(wrong("program (n, a: bool)" + body), HasSubstr("int64 or float32 should stand"));
  EXPECT_THAT(wrong("program (n, a: int64 = 0.5)" + body), HasSubstr("a is of type int64"));
  EXPECT_THAT(wrong("program (n) { param U: float32[n]; inout X[i:n]: float32; update X[i] = set() "
                    "X[i] + U[i]; }"),
              HasSubstr("a param and a result, not an inout"));
  const Status onnx =
      define({.name = "test.other", .onnx = "SwiGlu", .program = "program (n)" + body});
  EXPECT_THAT(onnx.to_string(), HasSubstr("'SwiGlu' is no node's name"));
  const Status taken = define(
      {.name = "test.other", .onnx = "com.example::SwiGlu", .program = "program (n)" + body});
  EXPECT_THAT(taken.to_string(),
              HasSubstr("com.example::SwiGlu means operator test.swiglu already"));
  // The same once more is nothing new.
  EXPECT_TRUE(define(definitions()[0]).ok());
}

TEST_F(Defined, CasesThatAreNoneAreRefused) {
  const std::string program = "program (n) { param X: float32[n]; result Y[i:n - 2] = X[i + 3]; }";
  ASSERT_TRUE(define({.name = "test.past", .program = program}).ok());
  EXPECT_THAT(cases_of(*find_defined("test.past")).status().to_string(),
              HasSubstr("operator test.past: no case was given, and none made up fits"));
  const std::string copy = "program (n) { param X: float32[n]; result Y[i:n] = X[i]; }";
  ASSERT_TRUE(define({.name = "test.copy", .program = copy, .cases = {{{"m", 3}}}}).ok());
  EXPECT_THAT(cases_of(*find_defined("test.copy")).status().to_string(),
              HasSubstr("operator test.copy: a case without n"));
}

}  // namespace
}  // namespace collage::tensor_program
