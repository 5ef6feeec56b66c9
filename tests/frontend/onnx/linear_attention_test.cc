// Operators that carry a state: that halves of a sequence, the state handed on, are the whole, and
// what is refused.
#include "frontend/onnx/model_builder.h"
#include "ops/random_inputs.h"

namespace collage {
namespace {

Tensor random_values(Shape shape, uint64_t seed) {
  return random_tensor({std::move(shape), DType::kFloat32}, seed);
}

// Elements [begin, end) of an axis of three.
Tensor part(const Tensor& data, size_t axis, int64_t begin, int64_t end) {
  Shape shape = data.shape();
  shape[axis] = end - begin;
  const Shape& whole = data.shape();
  Tensor result = Tensor::empty(DType::kFloat32, shape);
  float* to = result.data<float>();
  for (int64_t i = 0; i < whole[0]; ++i)
    for (int64_t j = 0; j < whole[1]; ++j)
      for (int64_t k = 0; k < whole[2]; ++k) {
        const int64_t at = axis == 1 ? j : k;
        if (at >= begin && at < end) *to++ = data.data<float>()[(i * whole[1] + j) * whole[2] + k];
      }
  return result;
}

std::vector<std::string> dims_of(const Tensor& tensor) {
  std::vector<std::string> dims;
  for (int64_t extent : tensor.shape()) dims.push_back(std::to_string(extent));
  return dims;
}

// One node with all inputs given at run time, an empty tensor for one that is left out.
std::vector<Tensor> run_node(const char* op, const std::vector<Tensor>& inputs,
                             const std::function<void(NodeBuilder&)>& set) {
  ModelBuilder m(28);
  std::vector<std::string> names;
  std::vector<Tensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(inputs[i].defined() ? "x" + std::to_string(i) : "");
    if (!inputs[i].defined()) continue;
    m.input(names.back(), dims_of(inputs[i]));
    given.push_back(inputs[i]);
  }
  NodeBuilder node = m.node(op, names, {"y", "state"});
  set(node);
  m.output("y").output("state");
  return m.run(given);
}

TEST(CausalConv, SeesWhatCameBefore) {
  const std::vector<Tensor> results = run_node(
      "CausalConvWithState", {floats({1, 1, 3}, {1, 2, 3}), floats({1, 1, 3}, {100, 10, 1})},
      [](NodeBuilder&) {});
  expect_values(results[0], {1, 1, 3}, {1, 12, 123});
  expect_values(results[1], {1, 1, 2}, {2, 3});
}

TEST(CausalConv, HalvesAreTheWhole) {
  const Tensor data = random_values({2, 4, 7}, 1), weight = random_values({4, 1, 4}, 2),
               bias = random_values({4}, 3);
  const auto set = [](NodeBuilder& n) { n.text("activation", "silu"); };
  const std::vector<Tensor> whole = run_node("CausalConvWithState", {data, weight, bias}, set);
  const std::vector<Tensor> first =
      run_node("CausalConvWithState", {part(data, 2, 0, 2), weight, bias}, set);
  const std::vector<Tensor> second =
      run_node("CausalConvWithState", {part(data, 2, 2, 7), weight, bias, first[1]}, set);
  expect_values(first[0], {2, 4, 2}, values_of(part(whole[0], 2, 0, 2)));
  expect_values(second[0], {2, 4, 5}, values_of(part(whole[0], 2, 2, 7)));
  expect_values(second[1], {2, 4, 3}, values_of(whole[1]));
}

TEST(LinearAttention, HalvesAreTheWhole) {
  const Tensor q = random_values({2, 5, 12}, 1), k = random_values({2, 5, 6}, 2),
               v = random_values({2, 5, 8}, 3);
  const Tensor decay = random_values({2, 5, 2}, 4), beta = random_values({2, 5, 1}, 5);
  const auto set = [](NodeBuilder& n) { n.integer("q_num_heads", 4).integer("kv_num_heads", 2); };
  const auto run = [&](int64_t begin, int64_t end, const Tensor& state) {
    std::vector<Tensor> inputs;
    for (const Tensor& tensor : {q, k, v}) inputs.push_back(part(tensor, 1, begin, end));
    inputs.push_back(state);
    for (const Tensor& tensor : {decay, beta}) inputs.push_back(part(tensor, 1, begin, end));
    return run_node("LinearAttention", inputs, set);
  };
  const std::vector<Tensor> whole = run(0, 5, Tensor()), first = run(0, 3, Tensor());
  ASSERT_EQ(first[1].shape(), (Shape{2, 2, 3, 4}));
  const std::vector<Tensor> second = run(3, 5, first[1]);
  expect_values(first[0], {2, 3, 16}, values_of(part(whole[0], 1, 0, 3)));
  expect_values(second[0], {2, 2, 16}, values_of(part(whole[0], 1, 3, 5)));
  expect_values(second[1], {2, 2, 3, 4}, values_of(whole[1]));
}

void expect_refused(int64_t positions, int64_t query_heads, const char* rule, ErrorCode code,
                    const char* message) {
  ModelBuilder m(28);
  for (const char* name : {"q", "k", "v"}) m.input(name, {"1", std::to_string(positions), "4"});
  m.node("LinearAttention", {"q", "k", "v"}, {"y"})
      .integer("q_num_heads", query_heads)
      .integer("kv_num_heads", 2)
      .text("update_rule", rule);
  m.output("y");
  expect_error(m.import(), code, message);
}

TEST(LinearAttention, WhatDoesNotFit) {
  expect_refused(2, 2, "swirl", ErrorCode::kBadModel, "update_rule 'swirl' is unknown");
  expect_refused(2, 2, "gated", ErrorCode::kBadModel, "decay does not fit the update_rule");
  expect_refused(2, 2, "delta", ErrorCode::kBadModel, "beta does not fit the update_rule");
  expect_refused(2, 3, "linear", ErrorCode::kBadModel, "no multiple of kv_num_heads 2");
  expect_refused(5000, 2, "linear", ErrorCode::kUnsupported, "5000 positions, at most 2048");
}

TEST(Optional, ATensorIsThere) {
  ModelBuilder m(18);
  m.input("x", {"2"});
  m.node("OptionalGetElement", {"x"}, {"y"});
  m.node("OptionalHasElement", {"x"}, {"a"});
  m.node("OptionalHasElement", {}, {"b"});
  m.output("y").output("a").output("b");
  const std::vector<Tensor> results = m.run({floats({2}, {3, 4})});
  expect_values(results[0], {2}, {3, 4});
  expect_values(results[1], {}, {1});
  expect_values(results[2], {}, {0});
}

}  // namespace
}  // namespace collage
