// Programs over symbols: their text, what they compute for given values, and how they are made from
// programs of one shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/registry.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/generalise.h"
#include "tensor_program/parsing.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

TEST(Symbols, TextOfExtentsAndFactors) {
  expect_round_trip(R"(program (n = 211, m = 5) {
  param x: float32[n, 2 * m];
  const c: float32[10];
  stage s[i:n] = sum(r:m / 2) x[i, r * 2];
  update s[i] = sum(r:m % 2) x[i, m - 1 + r];
  result y[i:n, j:2 * m] = x[i, j] * c[j] - s[i] / float32(n);
  schedule {
    s.compute_at(y, row);
    s.hoist_storage(y, task);
    y.split(i, task, row, by select(n * 2 < 100, n, (n + 7) / 8), guarded);
    y.vectorise(j, 8, masked);
    y.parallel(task);
  }
}
)");
}

TEST(Symbols, Refusals) {
  EXPECT_THAT(refusal("program (n = 2) { result y[i:m] = 1.0f; }"), HasSubstr("m is no extent"));
  EXPECT_THAT(refusal("program (n = 2, n = 3) { result y[i:n] = 1.0f; }"),
              HasSubstr("n stands twice"));
  EXPECT_THAT(refusal("program (n = 0) { result y[i:n] = 1.0f; }"), HasSubstr("n = 0"));
  EXPECT_THAT(refusal("program (n = 2) { result y[i:n - 2] = 1.0f; }"), HasSubstr("of extent 0"));
  EXPECT_THAT(refusal("program (n = 2) { result y[n:3] = 1.0f; }"), HasSubstr("n stands twice"));
  EXPECT_THAT(refusal("program { result y[i:n] = 1.0f; }"), HasSubstr("a number"));
  EXPECT_THAT(
      refusal("program (n = 2) { result y[i:n] = 1.0f; schedule { y.split(i, a, b, by m); } }"),
      HasSubstr("nothing binds m"));
}

TEST(Symbols, ExtentsNestToALimit) {
  const auto sum = [](const std::string& more, int times) {
    std::string extent = "n";
    for (int i = 0; i < times; ++i) extent += more;
    return "program (n = 1) {\n  result y[i:" + extent + "] = 1.0f;\n}\n";
  };
  for (const int times : {300, 200'000})
    for (const std::string more : {" + n", " - n", " * n", " / n", " % n"})
      EXPECT_THAT(refusal(sum(more, times)), HasSubstr("an extent of more than 256 levels"));
  expect_round_trip(sum(" + n", 250));
}

TEST(Symbols, OtherValues) {
  const Program program = parsed(R"(program (n = 4) {
  param x: float32[n];
  stage s[] = sum(r:n) x[r];
  result y[i:n + 1] = s[] / float32(n);
})");
  auto of_three = with_values(program, {{"n", 3}});
  ASSERT_TRUE(of_three.ok()) << of_three.status().to_string();
  const Tensor x = Tensor::from({3}, std::vector<float>{1, 2, 6});
  auto results = evaluate(*of_three, std::vector<Tensor>{x});
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ(results->at(0).shape(), (Shape{4}));
  EXPECT_EQ(results->at(0).data<float>()[3], 3.0f);
  EXPECT_FALSE(with_values(program, {{"n", 0}}).ok());
  EXPECT_FALSE(with_values(program, {{"m", 1}}).ok());
}

// ---- programs of one shape ----

Program emitted(std::string_view op, Shape shape, Attrs attrs, std::vector<Expr> more = {}) {
  register_all_ops();
  const Expr x = make_var("x", TensorType{std::move(shape), DType::kFloat32});
  std::vector<Expr> args{x};
  args.insert(args.end(), more.begin(), more.end());
  auto call = make_call(op, args, std::move(attrs));
  EXPECT_TRUE(call.ok()) << call.status().to_string();
  auto program = emit(make_function({x}, *call), {.row_stages = true, .whole_reductions = true});
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return *program;
}

TEST(Generalise, RowsOfASoftmax) {
  auto general = generalise(emitted("nn.softmax", {7, 33}, {{"axis", int64_t{-1}}}));
  ASSERT_TRUE(general.ok()) << general.status().to_string();
  EXPECT_EQ(general->values, (Symbols{{"n0", 7}, {"n1", 33}}));
  EXPECT_EQ(general->program.to_string(), R"(program (n0 = 211, n1 = 211) {
  param p0: float32[n0, n1];
  stage s0_sum[d0:n0] = max(r1:n1) p0[d0, r1];
  stage s0[d0:n0] = s0_sum[d0];
  stage s1[d0:n0, d1:n1] = exp(p0[d0, d1] - s0[d0]);
  stage s2_sum[d0:n0] = sum(r1:n1) s1[d0, r1];
  stage s2[d0:n0] = 1.0f / s2_sum[d0];
  result y0[i0:n0, i1:n1] = s1[i0, i1] * s2[i0];
}
)");
}

// Shapes of one kind have one text, a single row and a single column included.
TEST(Generalise, TheTextIsThatOfEveryShape) {
  const Attrs axis{{"axis", Ints{1}}, {"keepdims", true}};
  const std::string text = generalise(emitted("mean", {5, 9}, axis))->program.to_string();
  EXPECT_THAT(text, HasSubstr("result y0[i0:n0, i1:1] ="));
  EXPECT_THAT(text, HasSubstr("1.0f / float32(n1)"));
  for (const Shape& shape : {Shape{1, 9}, {5, 1}, {1, 1}, {64, 211}})
    EXPECT_EQ(generalise(emitted("mean", shape, axis))->program.to_string(), text);
}

TEST(Generalise, ConstantsFixExtents) {
  Tensor scale = Tensor::empty(DType::kFloat32, {6});
  std::fill_n(scale.data<float>(), 6, 2.0f);
  auto general = generalise(emitted("multiply", {4, 6}, {}, {make_constant(scale)}));
  ASSERT_TRUE(general.ok()) << general.status().to_string();
  EXPECT_EQ(general->values, (Symbols{{"n0", 4}}));
  EXPECT_THAT(general->program.to_string(), HasSubstr("param p0: float32[n0, 6]"));
}

TEST(Generalise, WhatComputesTheSameForTheShape) {
  const Program program = emitted("nn.softmax", {3, 10}, {{"axis", int64_t{-1}}});
  const Generalised general = *generalise(program);
  Tensor x = Tensor::empty(DType::kFloat32, {3, 10});
  for (int i = 0; i < 30; ++i) x.data<float>()[i] = static_cast<float>(i % 7);
  const std::vector<Tensor> inputs{x};
  const Tensor wanted = evaluate(program, inputs)->at(0);
  const Tensor given = evaluate(*with_values(general.program, general.values), inputs)->at(0);
  EXPECT_EQ(std::memcmp(wanted.raw(), given.raw(), wanted.bytes()), 0);
}

TEST(Generalise, Refusals) {
  // Every index is an expression: the shape is a part of what is computed.
  auto blocks =
      generalise(parsed("program { param x: float32[6]; result y[i:3, j:2] = x[i * 2 + j]; }"));
  ASSERT_FALSE(blocks.ok());
  EXPECT_THAT(blocks.status().message(), HasSubstr("no extent of the program may vary"));
}

}  // namespace
}  // namespace collage::tensor_program
