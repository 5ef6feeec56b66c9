// The interpreter on small graphs whose results are known by hand.
#include "ops/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/registry.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

class InterpreterTest : public ::testing::Test {
 protected:
  void SetUp() override { register_all_ops(); }
};

Expr make(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  if (!result) ADD_FAILURE() << result.status().to_string();
  return *result;
}

Expr item(const Expr& tuple, int64_t index) { return *make_tuple_get_item(tuple, index); }

TEST_F(InterpreterTest, SharedNodeIsUsedTwice) {
  Expr x = make_var("x", TensorType{{3}, DType::kFloat32});
  Expr y = make("nn.relu", {x});
  Function f = make_function({x}, make("add", {y, y}));
  auto out = interpret(f, {{Tensor::from<float>({3}, {-1, 2, 3})}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_THAT((*out)[0].values<float>(), ElementsAre(0, 4, 6));
}

TEST_F(InterpreterTest, TuplesOfParametersAndResults) {
  Type leaf(TensorType{{2}, DType::kInt64});
  Expr pair = make_var("pair", Type::tuple({leaf, leaf}));
  Expr sum = make("add", {item(pair, 0), item(pair, 1)});
  Function f = make_function({pair}, make_tuple({item(pair, 1), make_tuple({sum})}));
  auto out =
      interpret(f, {{Tensor::from<int64_t>({2}, {1, 2}), Tensor::from<int64_t>({2}, {10, 20})}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  ASSERT_EQ(out->size(), 2u);
  EXPECT_THAT((*out)[0].values<int64_t>(), ElementsAre(10, 20));
  EXPECT_THAT((*out)[1].values<int64_t>(), ElementsAre(11, 22));
}

TEST_F(InterpreterTest, SplitGivesATupleAndConcatenateTakesOne) {
  Expr x = make_var("x", TensorType{{1, 4}, DType::kFloat32});
  Expr parts = make("split", {x}, {{"indices_or_sections", Ints{1}}, {"axis", int64_t{1}}});
  Expr swapped =
      make("concatenate", {make_tuple({item(parts, 1), item(parts, 0)})}, {{"axis", int64_t{1}}});
  auto out = interpret(make_function({x}, swapped), {{Tensor::from<float>({1, 4}, {1, 2, 3, 4})}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_THAT((*out)[0].values<float>(), ElementsAre(2, 3, 4, 1));
}

TEST_F(InterpreterTest, CallsOfFunctionLiterals) {
  Type type(TensorType{{2}, DType::kFloat32});
  Expr inner_x = make_var("x", type), x = make_var("x", type);
  Function square = make_function({inner_x}, make("multiply", {inner_x, inner_x}));
  Expr twice = *make_function_call(square, {*make_function_call(square, {x})});
  auto out = interpret(make_function({x}, twice), {{Tensor::from<float>({2}, {2, 3})}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_THAT((*out)[0].values<float>(), ElementsAre(16, 81));
}

TEST_F(InterpreterTest, ParameterAndConstantAsResult) {
  Expr x = make_var("x", TensorType{{}, DType::kFloat32});
  Function f = make_function({x}, make_tuple({x, make_scalar(2.5f), x}));
  auto out = interpret(f, {{Tensor::scalar(1.0f)}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ((*out)[0].data<float>()[0], 1.0f);
  EXPECT_EQ((*out)[1].data<float>()[0], 2.5f);
  EXPECT_EQ((*out)[2].data<float>()[0], 1.0f);
}

TEST_F(InterpreterTest, ChecksInputsAndReportsWhereACallFailed) {
  Expr x = make_var("x", TensorType{{2}, DType::kInt32});
  Expr y = *make_call("divide", {make_scalar<int32_t>(1), x}, {}, "node7");
  Function f = make_function({x}, y);
  EXPECT_EQ(interpret(f, {}).status().code(), ErrorCode::kBadModel);
  EXPECT_EQ(interpret(f, {{Tensor::from<int32_t>({1}, {1})}}).status().code(),
            ErrorCode::kBadModel);
  auto out = interpret(f, {{Tensor::from<int32_t>({2}, {1, 0})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().to_string(), "node7 (divide): integer division by zero");
}

TEST_F(InterpreterTest, FreeVariableIsAnError) {
  Expr x = make_var("x", TensorType{{2}, DType::kFloat32});
  EXPECT_EQ(interpret(make_function({}, make("nn.relu", {x})), {}).status().code(),
            ErrorCode::kBadModel);
}

}  // namespace
}  // namespace collage
