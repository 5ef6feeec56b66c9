// The matrix unit's attention, and its candidates.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/contraction/check.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "partition/dataflow_graph.h"

namespace collage::testing {
namespace {

struct Case {
  Shape batch = {1};
  int64_t queries = 1, keys = 1, width = 16, value_width = 16;
  double scale = 0.25;
  bool causal = false;
  Shape mask = {};          ///< none if empty
  bool transposed = false;  ///< the last of the batch's dimensions and the queries change places
};

Expr var(const std::string& name, Shape shape) {
  return make_var(name, TensorType{std::move(shape), DType::kFloat32});
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  register_all_ops();
  return make_call(op, std::move(args), std::move(attrs)).value();
}

Shape with(Shape batch, int64_t rows, int64_t columns) {
  batch.insert(batch.end(), {rows, columns});
  return batch;
}

Function attention(const Case& c) {
  std::vector<Expr> params{var("q", with(c.batch, c.queries, c.width)),
                           var("k", with(c.batch, c.keys, c.width)),
                           var("v", with(c.batch, c.keys, c.value_width))};
  if (!c.mask.empty()) params.push_back(var("mask", c.mask));
  Expr result = call("nn.attention", params, {{"scale", c.scale}, {"causal", c.causal}});
  if (c.transposed) {
    Ints axes;
    const auto rank = static_cast<int64_t>(c.batch.size()) + 2;
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
    std::swap(axes[static_cast<size_t>(rank - 3)], axes[static_cast<size_t>(rank - 2)]);
    result = call("transpose", {result}, {{"axes", axes}});
  }
  return make_function(params, result);
}

/// Queries, keys and values of all heads side by side in one tensor, as one product gives them.
Function split_attention(const Expr& x, int64_t images, int64_t tokens, int64_t heads,
                         int64_t width) {
  const Expr split =
      call("split", {x}, {{"indices_or_sections", int64_t{3}}, {"axis", int64_t{-1}}});
  std::vector<Expr> operands;
  for (int64_t i = 0; i < 3; ++i) {
    const Expr part = call("reshape", {make_tuple_get_item(split, i).value()},
                           {{"newshape", Ints{images, tokens, heads, width}}});
    operands.push_back(call("transpose", {part}, {{"axes", Ints{0, 2, 1, 3}}}));
  }
  const Expr result = call("nn.attention", operands, {{"scale", 0.2}, {"causal", true}});
  return make_function({x}, call("transpose", {result}, {{"axes", Ints{0, 2, 1, 3}}}));
}

std::vector<Tensor> inputs_of(const Function& function) {
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(collage::random_tensor(param->tensor_type(), inputs.size() + 1));
  return inputs;
}

void check(const Function& function) { check_amx(function, inputs_of(function)); }

void check(const Case& c) {
  SCOPED_TRACE(fmt::format("batch {} queries {} keys {} width {} values {} causal {}",
                           shape_to_string(c.batch), c.queries, c.keys, c.width, c.value_width,
                           c.causal));
  check(attention(c));
}

class AmxAttention : public MatrixUnit {};

TEST_F(AmxAttention, EveryNumberOfTokens) {
  for (int64_t tokens :
       {1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 127, 128, 130})
    for (bool causal : {false, true}) {
      check({{3}, tokens, tokens, 32, 32, 0.2, causal});
    }
}

TEST_F(AmxAttention, EveryWidth) {
  for (int64_t width : {8, 16, 20, 32, 48, 64, 80, 128, 256}) {
    check({{2}, 40, 40, width, width, 0.15, true});
    check({{2}, 40, 40, width, 64, 0.15, false});
    check({{2}, 40, 40, 64, width, 0.15, false});
  }
}

TEST_F(AmxAttention, QueriesAndKeysOfDifferentNumber) {
  for (bool causal : {false, true}) {
    check({{2}, 5, 70, 64, 64, 0.125, causal});
    check({{2}, 70, 5, 64, 64, 0.125, causal});
    check({{2}, 1, 129, 64, 64, 0.125, causal});
    check({{2}, 100, 33, 64, 64, 0.125, causal});
  }
}

TEST_F(AmxAttention, BatchesAndHeads) {
  for (bool causal : {false, true}) {
    check({{2, 3}, 70, 70, 32, 32, 0.2, causal});
    check({{1}, 140, 140, 32, 32, 0.2, causal});
    check({{}, 33, 33, 32, 32, 0.2, causal});
    check({{7}, 3, 3, 32, 32, 0.2, causal});
  }
}

TEST_F(AmxAttention, ItsRowsMayBeMovedAfterwards) {
  check({{4}, 37, 37, 32, 48, 0.2, true, {}, true});
  check({{2, 3}, 37, 50, 32, 20, 0.2, false, {}, true});
}

TEST_F(AmxAttention, OperandsLieInALargerTensor) {
  const Expr x = var("x", {2, 40, 180});
  const Function by_split = split_attention(x, 2, 40, 3, 20);
  check(by_split);

  std::vector<Expr> operands;
  const Expr all = call("transpose", {call("reshape", {x}, {{"newshape", Ints{2, 40, 3, 3, 20}}})},
                        {{"axes", Ints{2, 0, 3, 1, 4}}});
  for (int64_t i = 0; i < 3; ++i) {
    const Expr slice =
        call("strided_slice", {all}, {{"begin", Ints{i}}, {"end", Ints{i + 1}}, {"axes", Ints{0}}});
    operands.push_back(call("reshape", {slice}, {{"newshape", Ints{2, 3, 40, 20}}}));
  }
  const Function by_slices =
      make_function({x}, call("nn.attention", operands, {{"scale", 0.2}, {"causal", false}}));
  check(by_slices);
}

TEST_F(AmxAttention, MasksOfEveryExtent) {
  for (const Shape& mask : {Shape{45}, Shape{1, 45}, Shape{38, 45}, Shape{3, 1, 45},
                            Shape{2, 1, 1, 45}, Shape{2, 3, 38, 45}})
    for (bool causal : {false, true}) check({{2, 3}, 38, 45, 32, 32, 0.2, causal, mask});
}

TEST_F(AmxAttention, AConstantMask) {
  const Expr q = var("q", {3, 38, 32}), k = var("k", {3, 45, 32}), v = var("v", {3, 45, 32});
  const Expr mask = make_constant(collage::random_tensor({{38, 45}, DType::kFloat32}, 9));
  const Function function =
      make_function({q, k, v}, call("nn.attention", {q, k, v, mask}, {{"scale", 0.2}}));
  check(function);
}

TEST_F(AmxAttention, MasksThatHideKeysOrAllOfThem) {
  const Function function = attention({{1}, 40, 70, 32, 32, 0.2, false, {40, 70}});
  std::vector<Tensor> inputs = inputs_of(function);
  const auto hide = [&](float hidden, int64_t whole_rows) {
    float* mask = inputs[3].data<float>();
    for (int64_t i = 0; i < 40; ++i)
      for (int64_t j = 0; j < 70; ++j)
        mask[i * 70 + j] = i < whole_rows || (i + j) % 3 == 0 ? hidden : 0;
    check_amx(function, inputs);
  };
  hide(-10000, 0);
  hide(-std::numeric_limits<float>::infinity(), 0);
  hide(-std::numeric_limits<float>::infinity(), 3);  // NaN
  hide(-std::numeric_limits<float>::max(), 3);       // beside which scores are nothing: all alike
}

TEST_F(AmxAttention, LargeScores) {
  // Each query agrees with every 16th key, by 3600.
  const Function function = attention({{2}, 50, 50, 16, 32, 1.0, true});
  std::vector<Tensor> inputs = inputs_of(function);
  for (size_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < inputs[i].size(); ++j)
      inputs[i].data<float>()[j] = j % 16 == j / 16 % 50 % 16 ? 60.0f : 0.0f;
  check_amx(function, inputs);
}

TEST_F(AmxAttention, TheLargestScoresComeLast) {
  const Function function = attention({{2}, 40, 100, 16, 32, 1.0, false, {100}});
  std::vector<Tensor> inputs = inputs_of(function);
  // By little, and by so much that a weight relative to the first ones would be infinite.
  for (float step : {0.5f, 3.0f, 1000.0f}) {
    for (int64_t j = 0; j < 100; ++j)
      inputs[3].data<float>()[j] = static_cast<float>(std::min<int64_t>(j - 70, 0)) * step;
    check_amx(function, inputs);
  }
}

TEST_F(AmxAttention, NanStaysWhereItBelongs) {
  for (size_t operand = 0; operand < 3; ++operand) {
    SCOPED_TRACE(operand);
    // Where the reference multiplies a hidden value by zero the kernel may leave it out.
    const Function function = attention({{2}, 40, 40, 32, 32, 0.2, operand != 2});
    std::vector<Tensor> inputs = inputs_of(function);
    std::memset(inputs[operand].data<float>() + 35 * 32 + 5, 0xff, 4);
    check_amx(function, inputs);
  }
}

TEST_F(AmxAttention, RefusesWhatItCannotRead) {
  const Expr q = var("q", {2, 8, 16}), k = var("k", {2, 8, 16}), v = var("v", {2, 8, 16});
  const Expr mask = var("mask", {2, 8, 1});
  EXPECT_THAT(refusal(make_function({q, k, v, mask},
                                    call("nn.attention", {q, k, v, mask}, {{"scale", 1.0}}))),
              ::testing::HasSubstr("mask"));
  const Expr plain = call("nn.attention", {q, k, v}, {{"scale", 1.0}});
  EXPECT_THAT(
      refusal(make_function({q, k, v}, call("transpose", {plain}, {{"axes", Ints{0, 2, 1}}}))),
      ::testing::HasSubstr("after attention"));
  const Expr moved = call("transpose", {var("k", {2, 16, 8})}, {{"axes", Ints{0, 2, 1}}});
  EXPECT_THAT(refusal(make_function({q, as<CallNode>(moved)->args[0], v},
                                    call("nn.attention", {q, moved, v}, {{"scale", 1.0}}))),
              ::testing::HasSubstr("columns lie apart"));
  EXPECT_THAT(refusal(make_function(
                  {q, k, v}, call("nn.attention", {call("nn.relu", {q}), k, v}, {{"scale", 1.0}}))),
              ::testing::HasSubstr("nn.relu in front of attention"));
  EXPECT_THAT(refusal(make_function({q, k, v}, call("nn.relu", {plain}))),
              ::testing::HasSubstr("after attention"));
}

TEST(AmxAttentionRule, TakesWhatMovesItsOperandsAndItsResult) {
  const std::string moved = "transpose+transpose+transpose+nn.attention";
  EXPECT_THAT(candidate_labels(split_attention(var("x", {2, 40, 180}), 2, 40, 3, 20)),
              ::testing::UnorderedElementsAre(
                  "nn.attention", "nn.attention+transpose", moved, moved + "+transpose",
                  "split+reshape+transpose+reshape+transpose+reshape+transpose+nn.attention",
                  "split+reshape+transpose+reshape+transpose+reshape+transpose+nn.attention+"
                  "transpose"));
}

}  // namespace
}  // namespace collage::testing
