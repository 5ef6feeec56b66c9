// The matrix unit's attention against the reference, under the gate that candidates have to pass.
// Buffers end where a page without access begins; the workspace and the results start as NaN.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/amx/amx_backend.h"
#include "backend/amx/tiles.h"
#include "base/integers.h"
#include "cost/comparison.h"
#include "cost/guarded_buffer.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "partition/dataflow_graph.h"
#include "partition/rules/rule.h"

namespace collage::amx {
namespace {

struct Case {
  Shape batch = {1};
  int64_t queries = 1, keys = 1, width = 16, value_width = 16;
  double scale = 0.25;
  bool causal = false;
  Shape mask = {};          ///< none if empty
  bool transposed = false;  ///< the last of the batch's dimensions and the queries change places
  int threads = 2;
};

Expr var(const std::string& name, Shape shape) {
  return make_var(name, TensorType{std::move(shape), DType::kFloat32});
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
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
    inputs.push_back(random_tensor(param->tensor_type(), inputs.size() + 1));
  return inputs;
}

Tensor computed(Kernel& kernel, const std::vector<Tensor>& inputs, const TensorType& result) {
  const auto buffer = [](size_t bytes, const char* name) {
    GuardedBuffer made =
        GuardedBuffer::allocate(round_up(bytes, 64), GuardedBuffer::Side::kEnd, name).value();
    made.fill(0xff);  // NaN, in bfloat16 too
    return made;
  };
  std::vector<GuardedBuffer> in;
  std::vector<void*> pointers;
  for (const Tensor& input : inputs) {
    in.push_back(
        GuardedBuffer::allocate(input.bytes(), GuardedBuffer::Side::kEnd, "input").value());
    std::memcpy(in.back().data(), input.raw(), input.bytes());
    in.back().make_read_only();
    pointers.push_back(in.back().data());
  }
  Tensor out = Tensor::empty(result.dtype, result.shape);
  GuardedBuffer to = GuardedBuffer::allocate(out.bytes(), GuardedBuffer::Side::kEnd, "out").value();
  to.fill(0xff);
  GuardedBuffer workspace = buffer(kernel.workspace_bytes(), "workspace");
  void* result_pointer = to.data();
  const Status status = kernel.run({pointers.data(), &result_pointer, workspace.data()});
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(to.check().ok());
  EXPECT_TRUE(workspace.check().ok());
  std::memcpy(out.raw(), to.data(), out.bytes());
  return out;
}

class AmxAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    register_all_ops();
    const Status unit = matrix_unit();
    if (!unit.ok()) GTEST_SKIP() << unit.message();
  }

  /// With two and three parts, and with one.
  static void check(const Function& function, const std::vector<Tensor>& inputs, int threads,
                    bool lowered = true) {
    const std::unique_ptr<Backend> backend = make_amx_backend();
    const CompileOptions options{threads, ""};
    const Target plain{"amx", {}, {}}, exact{"amx", {{"parts", "3"}}, {}};
    const Tensor expected = std::move(interpret(function, inputs).value()[0]);
    for (const auto& offered :
         {backend->variants(function, plain, options), backend->variants(function, exact, options),
          backend->lowered_variants(function, plain, options)}) {
      ASSERT_TRUE(offered.ok()) << offered.status().to_string();
      ASSERT_EQ(offered->size(), 1U);
      const Variant& variant = offered->front();
      if (variant.lowered && !lowered) continue;
      SCOPED_TRACE(variant.name);
      auto kernel = backend->compile(function, variant, plain, options);
      ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
      const Tensor actual = computed(**kernel, inputs, function->result_type().tensor());
      // bfloat16 errs by 2^-9 in every operand; means of many values are smaller than these.
      const Tolerance tolerance = variant.lowered ? Tolerance{0, 0x1p-7, 0}
                                                  : candidate_tolerance(function, variant.relaxed);
      const Difference difference = compare_tensors(actual, expected, tolerance);
      EXPECT_TRUE(difference.within) << difference.reason;
      EXPECT_TRUE(difference.informative);
    }
  }

  static void check(const Case& c) {
    SCOPED_TRACE(fmt::format("batch {} queries {} keys {} width {} values {} causal {} threads {}",
                             shape_to_string(c.batch), c.queries, c.keys, c.width, c.value_width,
                             c.causal, c.threads));
    const Function function = attention(c);
    check(function, inputs_of(function), c.threads);
  }

  static std::string refusal(const Function& function) {
    const auto variants =
        make_amx_backend()->variants(function, Target{"amx", {}, {}}, CompileOptions{2, ""});
    EXPECT_FALSE(variants.ok());
    return variants.ok() ? "" : variants.status().message();
  }
};

TEST_F(AmxAttention, EveryNumberOfTokens) {
  int threads = 0;
  for (int64_t tokens :
       {1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 127, 128, 130})
    for (bool causal : {false, true}) {
      threads = threads % 3 + 1;
      check({{3}, tokens, tokens, 32, 32, 0.2, causal, {}, false, threads});
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

TEST_F(AmxAttention, BatchesHeadsAndThreads) {
  for (int threads = 1; threads <= 3; ++threads)
    for (bool causal : {false, true}) {
      check({{2, 3}, 70, 70, 32, 32, 0.2, causal, {}, false, threads});
      check({{1}, 140, 140, 32, 32, 0.2, causal, {}, false, threads});
      check({{}, 33, 33, 32, 32, 0.2, causal, {}, false, threads});
      check({{7}, 3, 3, 32, 32, 0.2, causal, {}, false, threads});
    }
}

TEST_F(AmxAttention, ItsRowsMayBeMovedAfterwards) {
  check({{4}, 37, 37, 32, 48, 0.2, true, {}, true});
  check({{2, 3}, 37, 50, 32, 20, 0.2, false, {}, true});
}

TEST_F(AmxAttention, OperandsLieInALargerTensor) {
  const Expr x = var("x", {2, 40, 180});
  const Function by_split = split_attention(x, 2, 40, 3, 20);
  check(by_split, inputs_of(by_split), 2);

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
  check(by_slices, inputs_of(by_slices), 2);
}

TEST_F(AmxAttention, MasksOfEveryExtent) {
  for (const Shape& mask : {Shape{45}, Shape{1, 45}, Shape{38, 45}, Shape{3, 1, 45},
                            Shape{2, 1, 1, 45}, Shape{2, 3, 38, 45}})
    for (bool causal : {false, true}) check({{2, 3}, 38, 45, 32, 32, 0.2, causal, mask});
}

TEST_F(AmxAttention, AConstantMask) {
  const Expr q = var("q", {3, 38, 32}), k = var("k", {3, 45, 32}), v = var("v", {3, 45, 32});
  const Expr mask = make_constant(random_tensor({{38, 45}, DType::kFloat32}, 9));
  const Function function =
      make_function({q, k, v}, call("nn.attention", {q, k, v, mask}, {{"scale", 0.2}}));
  check(function, inputs_of(function), 2);
}

TEST_F(AmxAttention, MasksThatHideKeysOrAllOfThem) {
  const Function function = attention({{1}, 40, 70, 32, 32, 0.2, false, {40, 70}});
  std::vector<Tensor> inputs = inputs_of(function);
  const auto hide = [&](float hidden, int64_t whole_rows) {
    float* mask = inputs[3].data<float>();
    for (int64_t i = 0; i < 40; ++i)
      for (int64_t j = 0; j < 70; ++j)
        mask[i * 70 + j] = i < whole_rows || (i + j) % 3 == 0 ? hidden : 0;
    check(function, inputs, 2);
  };
  hide(-10000, 0);
  hide(-std::numeric_limits<float>::infinity(), 0);
  hide(-std::numeric_limits<float>::infinity(), 3);  // NaN
  hide(-std::numeric_limits<float>::max(), 3);       // beside which scores are nothing: all alike
}

TEST_F(AmxAttention, LargeScores) {
  // Of one part nothing would be left after scores of hundreds.
  const Function function = attention({{2}, 50, 50, 16, 32, 1.0, true});
  std::vector<Tensor> inputs = inputs_of(function);
  for (size_t i = 0; i < 2; ++i)
    for (float& value : std::span(inputs[i].data<float>(), static_cast<size_t>(inputs[i].size())))
      value = std::round(value * 4) * 16;
  check(function, inputs, 2, false);
}

TEST_F(AmxAttention, NanStaysWhereItBelongs) {
  for (size_t operand = 0; operand < 3; ++operand) {
    SCOPED_TRACE(operand);
    // Where the reference multiplies a hidden value by zero the kernel may leave it out.
    const Function function = attention({{2}, 40, 40, 32, 32, 0.2, operand != 2});
    std::vector<Tensor> inputs = inputs_of(function);
    std::memset(inputs[operand].data<float>() + 35 * 32 + 5, 0xff, 4);
    check(function, inputs, 1);
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
  register_all_ops();
  const DataflowGraph graph(split_attention(var("x", {2, 40, 180}), 2, 40, 3, 20));
  const Target target{"amx", {}, {}};
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"amx", make_amx_backend()->partition_rule(target), target});
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    labels.push_back(candidate.sub_graph.ops_label(graph));
  const std::string moved = "transpose+transpose+transpose+nn.attention";
  EXPECT_THAT(labels,
              ::testing::UnorderedElementsAre(
                  "nn.attention", "nn.attention+transpose", moved, moved + "+transpose",
                  "split+reshape+transpose+reshape+transpose+reshape+transpose+nn.attention",
                  "split+reshape+transpose+reshape+transpose+reshape+transpose+nn.attention+"
                  "transpose"));
}

}  // namespace
}  // namespace collage::amx
