// The table of test cases covers every operator, and what it builds runs; random inputs respect
// what the operators demand of integers.
#include "ops/cases.h"

#include <cmath>
#include <set>

#include "ir/op.h"
#include "op_test.h"
#include "ops/control.h"

namespace collage {
namespace {

TEST(CasesTest, EveryOperatorHasAtLeastTwo) {
  register_all_ops();
  std::set<std::string> names;
  for (const OpDef* op : all_ops()) {
    names.insert(op->name);
    if (is_control_op(op->name)) continue;  // of functions: control_test.cc
    // One that takes nothing has one case.
    EXPECT_GE(op_cases(op->name).size(), op->max_args == 0 ? 1u : 2u) << op->name;
    EXPECT_TRUE(op->reference) << op->name;
  }
  for (const OpCase& c : op_cases()) EXPECT_TRUE(names.count(c.op)) << c.op;
  EXPECT_GE(names.size(), 130u);
}

TEST(CasesTest, EveryCaseRunsGivesItsTypeAndIsFinite) {
  register_all_ops();
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.to_string());
    Result<OpCaseFunction> built = build_case(c, 7);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    Result<std::vector<Tensor>> out = interpret(built->function, built->inputs);
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    std::vector<TensorType> leaves = built->function->result_type().leaves();
    ASSERT_EQ(out->size(), leaves.size());
    for (size_t k = 0; k < leaves.size(); ++k) {
      EXPECT_EQ((*out)[k].shape(), leaves[k].shape);
      EXPECT_EQ((*out)[k].dtype(), leaves[k].dtype);
      for (int64_t e = 0; e < (*out)[k].size(); ++e)
        ASSERT_TRUE(std::isfinite((*out)[k].element_as_double(e)));
    }
    std::vector<Type> types;
    const auto* call = as<CallNode>(built->function->body);
    for (const Expr& arg : call->args) types.push_back(arg->type());
    if (call->op->flops) {
      EXPECT_GE(call->op->flops(types, call->attrs, call->type()), 0);
    }
  }
}

// The same values in double give the same result up to float's rounding: no kernel loses precision
// on the way.
TEST(CasesTest, DoublePrecisionAgrees) {
  register_all_ops();
  size_t compared = 0;
  for (const OpCase& c : op_cases()) {
    if (c.op == "cast" || c.op == "reinterpret" || c.op.starts_with("qnn.") ||
        c.op == "vision.non_max_suppression")
      continue;  // those are of float32 alone
    SCOPED_TRACE(c.to_string());
    std::vector<Tensor> inputs, wide_inputs;
    bool any = false;
    for (size_t k = 0; k < c.args.size(); ++k) {
      inputs.push_back(random_tensor(c.args[k].type, k, c.args[k].range));
      wide_inputs.push_back(inputs.back());
      if (c.args[k].type.dtype != DType::kFloat32) continue;
      any = true;
      wide_inputs.back() = Tensor::empty(DType::kFloat64, inputs.back().shape());
      for (int64_t e = 0; e < inputs.back().size(); ++e)
        wide_inputs.back().data<double>()[e] = inputs.back().element_as_double(e);
    }
    if (!any) continue;
    std::vector<Tensor> narrow = run_all(c.op, inputs, c.attrs, c.as_tuple);
    std::vector<Tensor> exact = run_all(c.op, wide_inputs, c.attrs, c.as_tuple);
    ASSERT_EQ(narrow.size(), exact.size());
    for (size_t k = 0; k < narrow.size(); ++k)
      for (int64_t e = 0; e < narrow[k].size(); ++e) {
        double expected = exact[k].element_as_double(e);
        ASSERT_NEAR(narrow[k].element_as_double(e), expected,
                    1.2e-7 * std::max(1.0, std::abs(expected)))
            << "element " << e;
      }
    ++compared;
  }
  EXPECT_GT(compared, 300u);
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  if (!result) ADD_FAILURE() << result.status().to_string();
  return *result;
}

TEST(RandomInputsTest, AreSeededAndWithinRange) {
  TensorType type{{1000}, DType::kFloat32};
  EXPECT_EQ(floats_of(random_tensor(type, 5)), floats_of(random_tensor(type, 5)));
  EXPECT_NE(floats_of(random_tensor(type, 5)), floats_of(random_tensor(type, 6)));
  std::set<int64_t> seen;
  for (int64_t value : values_of<int64_t>(random_tensor({{1000}, DType::kInt64}, 1, {-2, 3})))
    seen.insert(value);
  EXPECT_THAT(seen, ::testing::ElementsAre(-2, -1, 0, 1, 2, 3));
  double mean = 0;
  for (float value : floats_of(random_tensor(type, 9))) {
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
    mean += static_cast<double>(value) / 1000;
  }
  EXPECT_NEAR(mean, 0, 0.1);
}

TEST(RandomInputsTest, IndicesStayWithinWhatTheyIndex) {
  register_all_ops();
  Expr ids = make_var("ids", TensorType{{4, 8}, DType::kInt64});
  Expr scale = make_var("scale", TensorType{{}, DType::kInt64});
  Expr words = make_constant(Tensor::zeros(DType::kFloat32, {50, 3}));
  Expr kinds = make_constant(Tensor::zeros(DType::kFloat32, {20, 3}));
  Expr flat =
      call("reshape", {call("cast", {ids}, {{"dtype", DType::kInt32}})}, {{"newshape", Ints{32}}});
  Expr sum = call("add", {call("take", {words, flat}), call("take", {kinds, flat})});
  Expr quotient = call("divide", {make_scalar<int64_t>(9), scale});
  Function f = make_function({ids, scale}, make_tuple({sum, quotient}));
  std::vector<ValueRange> ranges = input_ranges(f);
  EXPECT_EQ(ranges[0].low, 0);
  EXPECT_EQ(ranges[0].high, 19);
  EXPECT_EQ(ranges[1].low, 1);
  for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_TRUE(interpret(f, random_inputs(f, seed)).ok());
  const std::vector<int64_t> drawn = values_of<int64_t>(random_inputs(f, 1)[0]);
  EXPECT_GT(*std::max_element(drawn.begin(), drawn.end()), 7);
}

TEST(RandomInputsTest, IndicesLeaveRoomForWhatIsAddedToThem) {
  register_all_ops();
  Expr first = make_var("first", TensorType{{1}, DType::kInt64});
  Expr words = make_constant(Tensor::zeros(DType::kFloat32, {10, 3}));
  Expr steps = make_constant(Tensor::from<int64_t>({3}, {0, 1, 2}));
  Function f = make_function({first}, call("take", {words, call("add", {steps, first})}));
  EXPECT_EQ(input_ranges(f)[0].high, 7);
}

TEST(RandomInputsTest, EveryCaseAsAFunctionOfItsParametersRuns) {
  register_all_ops();
  for (const OpCase& c : op_cases()) {
    Result<OpCaseFunction> built = build_case(c, 1);
    ASSERT_TRUE(built.ok()) << c.to_string();
    auto out = interpret(built->function, random_inputs(built->function, 2));
    EXPECT_TRUE(out.ok()) << c.to_string() << ": " << out.status().to_string();
  }
}

}  // namespace
}  // namespace collage
