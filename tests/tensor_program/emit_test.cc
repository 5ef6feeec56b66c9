// emit: the programs of functions of operators, as text, and their values against the interpreter
// over every operator's cases.
#include "tensor_program/emit/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "ir/op.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "tensor_program/accesses.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Expr input(const std::string& name, Shape shape) {
  register_all_ops();
  return make_var(name, TensorType{std::move(shape), DType::kFloat32});
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.value();
}

Expr weights(Shape shape) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>(std::sin(i * 1.3));
  return make_constant(tensor);
}

/// The values that the program gives for the function's inputs, against the interpreter's.
void expect_values(const Function& function, const std::vector<Tensor>& inputs,
                   const Program& program) {
  std::vector<Tensor> params;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.is_constant) params.push_back(inputs[static_cast<size_t>(buffer.param)]);
  auto got = evaluate(program, params);
  auto want = interpret(function, inputs);
  ASSERT_TRUE(want.ok()) << want.status().to_string();
  ASSERT_TRUE(got.ok()) << got.status().to_string() << "\n" << program.to_string();
  ASSERT_EQ(got->size(), want->size());
  for (size_t r = 0; r < want->size(); ++r) {
    const Tensor &a = (*got)[r], &b = (*want)[r];
    ASSERT_EQ(a.dtype(), b.dtype());
    ASSERT_EQ(a.shape(), b.shape());
    double largest = 1e-3, error = 0;
    bool same_kind = true;  // infinities and NaN stand in the same places
    for (int64_t i = 0; i < b.size(); ++i) {
      const double x = a.element_as_double(i), y = b.element_as_double(i);
      if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      same_kind = same_kind && std::isfinite(x) && std::isfinite(y);
      error = std::max(error, std::abs(x - y));
    }
    EXPECT_TRUE(same_kind) << program.to_string();
    EXPECT_LE(error, 1e-5 * largest) << program.to_string();
  }
}

std::string emitted(std::vector<Expr> params, const Expr& body) {
  auto program = emit(make_function(std::move(params), body));
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  if (!program.ok()) return "";
  auto again = parse_program(program->to_string());
  EXPECT_TRUE(again.ok() && equal(*program, *again)) << program->to_string();
  std::string text = program->to_string();  // without the values of constants
  for (size_t at = 0; (at = text.find(" = {")) != std::string::npos;)
    text.erase(at, text.find('}', at) + 1 - at);
  return text;
}

TEST(Emit, FusesAcrossOperators) {
  const Expr x = input("x", {4, 6}), r = input("r", {4, 3});
  const Expr y = call("nn.dense", {call("nn.relu", {x}), weights({3, 6})});
  const Expr z = call("add", {call("nn.bias_add", {y, weights({3})}, {{"axis", int64_t{-1}}}), r});
  EXPECT_EQ(emitted({x, r}, z), R"(program {
  param p0: float32[4, 6];
  const c1: float32[3, 6];
  const c2: float32[3];
  param p1: float32[4, 3];
  stage s0[d0:4, d1:3] = sum(r0:6) max(p0[d0, r0], 0.0f) * c1[d1, r0];
  result y0[i0:4, i1:3] = s0[i0, i1] + c2[i1] + p1[i0, i1];
}
)");
}

TEST(Emit, QuantisedTensorsAreRealNumbersBetweenTheirReadingAndWriting) {
  register_all_ops();
  const Expr a = make_var("a", TensorType{{4, 6}, DType::kUInt8});
  const Expr b = make_var("b", TensorType{{4, 6}, DType::kInt8});
  const Expr x = call("qnn.dequantize", {a, make_scalar(0.5f), make_scalar(int32_t{128})});
  const Expr y = call("qnn.dequantize", {b, make_scalar(0.25f), make_scalar(int32_t{0})});
  const Expr z = call("nn.relu", {call("add", {x, y})});
  const Expr q = call("qnn.quantize", {z, make_scalar(2.0f), make_scalar(int32_t{3})},
                      {{"out_dtype", std::string("uint8")}});
  const std::string text = emitted({a, b}, q);
  EXPECT_THAT(text, HasSubstr("float32(int32(p0[i0, i1]) - 128) * 0.5f"));
  EXPECT_THAT(text, HasSubstr("float32(int32(p1[i0, i1])) * 0.25f"));
  EXPECT_THAT(text, HasSubstr("quotient("));
  EXPECT_THAT(text, HasSubstr("252.0f), -3.0f)) + 3)"));
}

TEST(Emit, AQuantisedProductIsASumOfIntegers) {
  register_all_ops();
  const Expr a = make_var("a", TensorType{{2, 8}, DType::kUInt8});
  const Expr b = make_var("b", TensorType{{3, 8}, DType::kInt8});
  const Expr y = call("qnn.dense", {a, b, make_scalar(0.5f), make_scalar(int32_t{7}), weights({3}),
                                    make_constant(Tensor::from<int32_t>({3}, {0, 1, 2}))});
  EXPECT_EQ(emitted({a, b}, y), R"(program {
  param p0: uint8[2, 8];
  param p1: int8[3, 8];
  const c2: int32[3];
  const c3: float32[3];
  stage s0[d0:2, d1:3] = sum(r0:8) (int32(p0[d0, r0]) - 7) * (int32(p1[d1, r0]) - c2[d1]);
  result y0[i0:2, i1:3] = float32(s0[i0, i1]) * (0.5f * c3[i1]);
}
)");
}

TEST(Emit, AProductOfIntegersIsASumOfThem) {
  register_all_ops();
  const Expr x = make_var("x", TensorType{{4, 8}, DType::kInt32});
  const Expr w = make_var("w", TensorType{{6, 8}, DType::kInt32});
  EXPECT_THAT(emitted({x, w}, call("nn.dense", {x, w})),
              HasSubstr("result s0[d0:4, d1:6] = sum(r0:8) p0[d0, r0] * p1[d1, r0];"));
}

TEST(Emit, AProductAloneIsTheResult) {
  const Expr a = input("a", {2, 4, 8}), b = input("b", {8, 5});
  EXPECT_EQ(emitted({a, b}, call("nn.matmul", {a, b})), R"(program {
  param p0: float32[2, 4, 8];
  param p1: float32[8, 5];
  result s0[d0:2, d1:4, d2:5] = sum(r0:8) p0[d0, d1, r0] * p1[r0, d2];
}
)");
}

TEST(Emit, APaddedConvolutionAndWhatFollows) {
  const Expr x = input("x", {1, 2, 5, 5});
  const Expr y = call("nn.conv2d", {x, weights({4, 2, 3, 3})}, {{"padding", Ints{1, 1, 1, 1}}});
  EXPECT_THAT(emitted({x}, call("nn.relu", {y})),
              HasSubstr("result y0[i0:1, i1:4, i2:5, i3:5] = max(s0[i0, i1, i2, i3], 0.0f);"));
}

TEST(Emit, StatisticsBecomeStages) {
  const Expr x = input("x", {3, 32});
  const std::string text = emitted({x}, call("nn.softmax", {x}));
  EXPECT_THAT(text, HasSubstr("stage s0_part[d0:3, u:16] = max(r1:2) p0[d0, r1 * 16 + u];"));
  EXPECT_THAT(text, HasSubstr("result y0[i0:3, i1:32] = exp(p0[i0, i1] - s0[i0]) * s1[i0];"));
}

TEST(Emit, ReductionsEndWithLanesThatEndWhereTheRowDoes) {
  const Expr x = input("x", {3, 37});
  const std::string text = emitted({x}, call("max", {x}, {{"axis", Ints{1}}}));
  EXPECT_THAT(text, HasSubstr("stage s0_part[d0:3, u:16] = max(r1:2) p0[d0, r1 * 16 + u];"));
  EXPECT_THAT(text, HasSubstr("update s0_part[d0, u] = max(r1:1) "
                              "select(u >= 11, p0[d0, 21 + u], "));
}

TEST(Emit, MovesAreIndicesAlone) {
  const Expr x = input("x", {4, 6});
  const Expr y = call("transpose", {call("reshape", {x}, {{"newshape", Ints{4, 2, 3}}})},
                      {{"axes", Ints{1, 0, 2}}});
  EXPECT_THAT(emitted({x}, y), HasSubstr("result y0[i0:2, i1:4, i2:3] = p0[i1, i0 * 3 + i2];"));
}

/// Operators that others register are emitted by rules of their own.
TEST(Emit, RulesOfOthers) {
  register_all_ops();
  OpDef op;
  op.name = "test.halved";
  op.kind = FusionKind::kElementwise;
  op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> { return args[0]; };
  register_op(std::move(op));
  const Expr x = input("x", {2, 3});
  const Function function = make_function({x}, call("test.halved", {call("nn.relu", {x})}));
  EXPECT_THAT(emit(function).status().message(), HasSubstr("no tensor program of test.halved"));
  register_emit_rule("test.halved", {check_float_args,
                                     [](Emitter& e, const CallNode& c, size_t, const Coords& at) {
                                       return e.value(c.args[0], at) * 0.5f;
                                     }});
  EXPECT_EQ(emit(function)->to_string(), R"(program {
  param p0: float32[2, 3];
  result y0[i0:2, i1:3] = max(p0[i0, i1], 0.0f) * 0.5f;
}
)");
}

Expr program_call(std::vector<Expr> args, const std::string& text) {
  if (find_op(kCallOp) == nullptr) register_call_ops();
  return call(kCallOp, std::move(args), {{"program", text}});
}

/// The program has the values of the function and stays inside its arrays.
void expect_right(const Function& function) {
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(as<ConstantNode>(weights(param->tensor_type().shape))->value);
  const Result<Program> program = emit(function);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  expect_values(function, inputs, *program);
  const Status inside = check_accesses(*program);
  EXPECT_TRUE(inside.ok()) << inside.to_string() << program->to_string();
}

constexpr const char* kSoftmaxProgram = R"(program {
  param A: float32[4, 32];
  stage M[i:4] = max(k:32) A[i, k];
  stage E[i:4, j:32] = exp(A[i, j] - M[i]);
  stage S[i:4] = sum(k:32) E[i, k];
  result Y[i:4, j:32] = E[i, j] / S[i];
})";

TEST(Emit, AnElementwiseProgramIsAPartOfWhatReadsIt) {
  const Expr x = input("x", {4, 6});
  const Expr y = program_call({call("nn.relu", {x})}, R"(program {
    param A: float32[4, 6];
    const f: float32[6] = {1, 2, 3, 4, 5, 6};
    stage T[i:4, j:6] = A[i, j] * f[j];
    result C[a:4, b:6] = T[a, b] * T[a, b];
  })");
  EXPECT_EQ(emitted({x}, call("negative", {y})), R"(program {
  const c0: float32[6];
  param p0: float32[4, 6];
  result y0[i0:4, i1:6] = -(max(p0[i0, i1], 0.0f) * c0[i1] * (max(p0[i0, i1], 0.0f) * c0[i1]));
}
)");
  expect_right(make_function({x}, call("negative", {y})));
}

TEST(Emit, StagesOfAProgramStandAmongOthers) {
  const Expr x = input("x", {4, 32});
  const Expr y = program_call({call("exp", {x})}, kSoftmaxProgram);
  const std::string text = emitted({x}, call("tanh", {y}));
  // What computes its parameter is a stage; its sums along rows are computed like an operator's.
  EXPECT_THAT(text, HasSubstr("[d0:4, d1:32] = exp(p0[d0, d1]);"));
  EXPECT_THAT(text, HasSubstr("_part[d0:4, u:16] = max(r1:2) "));
  EXPECT_THAT(text, HasSubstr("result y0[i0:4, i1:32] = tanh("));
  expect_right(make_function({x}, call("tanh", {y})));
}

TEST(Emit, ProgramsReadOneAnothersStages) {
  const Expr x = input("x", {4, 32}), w = input("w", {32, 5});
  const Expr y = program_call({x}, kSoftmaxProgram);
  const Expr z = program_call({y, w}, R"(program {
    param A: float32[4, 32];
    param B: float32[32, 5];
    result A1[i:4, j:5] = sum(k:32) A[i, k] * B[k, j];
    result A2[i:5, j:4] = A1[j, i];
  })");
  const Expr first = make_tuple_get_item(z, 0).value(), second = make_tuple_get_item(z, 1).value();
  const Expr both = call("add", {first, call("transpose", {second})});
  expect_right(make_function({x, w}, both));
  expect_right(make_function({x, w}, z));
  // The same program twice has stages of its own each time.
  expect_right(make_function({x}, program_call({y}, kSoftmaxProgram)));
}

TEST(Emit, NoProgramOfALibrarysFunction) {
  const Expr x = input("x", {4});
  register_external(
      "test.same", [](std::span<const TensorType> types) -> Result<TensorType> { return types[0]; },
      [](std::span<const DLTensor>, const DLTensor&) -> Status { return {}; });
  const Expr y = program_call({x},
                              "program { param A: float32[4];"
                              "result C[i:4] = extern \"test.same\"(A): float32; }");
  EXPECT_THAT(emit(make_function({x}, y)).status().message(),
              HasSubstr("a program that calls test.same"));
}

TEST(Emit, SaysWhyNot) {
  const Expr x = input("x", {4, 6});
  auto program = emit(make_function({x}, call("cumsum", {call("nn.relu", {x})})));
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.status().message(), HasSubstr("no tensor program of cumsum"));
}

TEST(Emit, TheLargestOfALargeWindowIsThatOfItsRows) {
  const Expr x = input("x", {1, 2, 20, 30});
  const auto window = [&](Shape size, int64_t padding) {
    return call("nn.max_pool2d", {x}, {{"pool_size", Ints(size)}, {"padding", Ints(4, padding)}});
  };
  EXPECT_THAT(emitted({x}, window({7, 7}, 0)), HasSubstr("stage s0[d0:1, d1:2, d2:14, d3:30] ="));
  EXPECT_THAT(emitted({x}, window({7, 7}, 3)), HasSubstr("stage s1[d0:1, d1:2, d2:20, d3:36] ="));
  EXPECT_THAT(emitted({x}, window({3, 3}, 1)), Not(HasSubstr("stage")));
  const auto joined = emit(make_function({x}, window({7, 7}, 3)), {.joins_by_parts = true});
  ASSERT_TRUE(joined.ok()) << joined.status().to_string();
  EXPECT_THAT(joined->to_string(),
              HasSubstr("update s1[d0, d1, d2, along + 3] = set(along:30) s0["));
}

TEST(Emit, PositionsOfEqualsAndOfWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<std::vector<float>> columns = {
      {-0.0f, 0, 0, -0.0f}, {1, nan, inf, -nan},        {-inf, -inf, -1, -inf}, {inf, 3, inf, -inf},
      {1e-45f, 0, -1e-45f}, {-1e-38f, -1e-39f, -3e38f}, {-2, -3, -2, -3},       {nan, nan, 1, 2}};
  for (const int64_t extent : {5, 16, 21}) {  // in one piece, in eights, with some left
    const auto count = static_cast<int64_t>(columns.size());
    Tensor values = Tensor::empty(DType::kFloat32, {extent, count});
    for (int64_t r = 0; r < extent; ++r)
      for (int64_t c = 0; c < count; ++c) {
        const std::vector<float>& column = columns[static_cast<size_t>(c)];
        values.data<float>()[r * count + c] = column[static_cast<size_t>(r) % column.size()];
      }
    for (const char* op : {"argmax", "argmin"})
      for (const bool last : {false, true}) {
        const Expr x = input("x", {extent, count});
        const Function function =
            make_function({x}, call(op, {x}, {{"axis", int64_t{0}}, {"select_last_index", last}}));
        const auto program = emit(function);
        ASSERT_TRUE(program.ok()) << program.status().to_string();
        expect_values(function, {values}, *program);
      }
  }
}

TEST(Emit, TheUsualPowersOfALocalNormalisationAreRoots) {
  const Expr x = input("x", {1, 7, 3});
  const auto with = [&](double beta, double alpha = 0.5) {
    return emitted({x},
                   call("nn.lrn", {x}, {{"size", int64_t{3}}, {"alpha", alpha}, {"beta", beta}}));
  };
  EXPECT_THAT(with(0.75), HasSubstr("sqrt(sqrt("));
  EXPECT_THAT(with(0.5), HasSubstr("sqrt("));
  for (const std::string& rooted : {with(0.75), with(0.5), with(1)})
    EXPECT_THAT(rooted, Not(HasSubstr("power")));
  EXPECT_THAT(with(0.6), HasSubstr("power"));
  EXPECT_THAT(with(0.75, -0.5), HasSubstr("power"));  // of -infinity no root is
  const auto wide = emit(make_function({x}, call("nn.lrn", {x}, {{"size", int64_t{65}}})));
  EXPECT_THAT(wide.status().message(), HasSubstr("a sum of 65 squares"));
}

// Those of which no case is emitted.
const std::set<std::string> kRefused = [] {
  std::istringstream names(
      "acos acosh all any asin asinh atan atanh bitwise_and bitwise_not "
      "bitwise_or bitwise_xor cumsum floor_mod isinf isnan "
      "left_shift logical_xor mod nn.batch_norm nn.conv1d_transpose "
      "nn.conv2d_transpose nn.conv3d_transpose "
      "match_size nonzero one_hot reverse_sequence right_shift shape_of unique "
      "tan topk random.normal random.run random.uniform "
      "reinterpret vision.non_max_suppression vision.roi_align nn.rnn nn.gru nn.lstm "
      "nn.deformable_conv");
  return std::set<std::string>(std::istream_iterator<std::string>(names), {});
}();

class EveryOperator : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> operators() {
  std::set<std::string> names;
  for (const OpCase& c : op_cases()) names.insert(c.op);
  return {names.begin(), names.end()};
}

TEST_P(EveryOperator, ComputesWhatItsReferenceDoes) {
  register_all_ops();
  size_t emitted = 0;
  for (const OpCase& c : op_cases(GetParam())) {
    SCOPED_TRACE(c.to_string());
    auto built = build_case(c, 5);
    ASSERT_TRUE(built.ok()) << built.status().message();
    auto program = emit(built->function);
    if (!program.ok()) {
      EXPECT_FALSE(program.status().message().empty());
      continue;
    }
    ++emitted;
    expect_values(built->function, built->inputs, *program);
    const Status inside = check_accesses(*program);
    EXPECT_TRUE(inside.ok()) << inside.to_string() << "\n" << program->to_string();
    auto again = parse_program(program->to_string());
    ASSERT_TRUE(again.ok()) << again.status().to_string() << program->to_string();
    EXPECT_TRUE(equal(*program, *again)) << program->to_string();
  }
  EXPECT_EQ(emitted == 0, kRefused.count(GetParam()) > 0) << emitted << " cases are emitted";
  if (emitted == 0) GTEST_SKIP() << "no case of the operator is emitted, as it is known";
}

INSTANTIATE_TEST_SUITE_P(Operators, EveryOperator, ::testing::ValuesIn(operators()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace collage::tensor_program
