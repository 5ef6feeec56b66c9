// Convolutions against loops written straight from their definitions.
#include "op_test.h"
#include "ops/cases.h"

namespace collage {
namespace {

// y[n,o,p] = sum over c, tap of x[n, c, p·stride - pad + tap·dilation] w[o,c,tap]
std::vector<double> naive_conv(const Tensor& x, const Tensor& w, const Attrs& attrs,
                               const Shape& out) {
  const size_t spatial = out.size() - 2;
  const Ints &strides = attrs.ints("strides"), &padding = attrs.ints("padding");
  const Ints& dilation = attrs.ints("dilation");
  const int64_t per_group = out[1] / attrs.integer("groups");
  std::vector<double> y;
  for (Index p(out); p; ++p) {
    double sum = 0;
    for (Index k(Shape(w.shape().begin() + 1, w.shape().end())); k; ++k) {
      Shape from = {p[0], p[1] / per_group * w.shape()[1] + k[0]};
      bool inside = true;
      for (size_t d = 0; d < spatial; ++d) {
        from.push_back(p[d + 2] * strides[d] - padding[d] + k[d + 1] * dilation[d]);
        inside = inside && from.back() >= 0 && from.back() < x.shape()[d + 2];
      }
      Shape tap = {p[1]};
      tap.insert(tap.end(), (*k).begin(), (*k).end());
      if (inside) sum += static_cast<double>(at(x, from)) * static_cast<double>(at(w, tap));
    }
    y.push_back(sum);
  }
  return y;
}

// Every input element adds w, scaled, to the outputs it reaches: y[q·stride - pad + tap·dilation].
std::vector<double> naive_transpose(const Tensor& x, const Tensor& w, const Attrs& attrs,
                                    const Shape& out) {
  const size_t spatial = out.size() - 2;
  const Ints &strides = attrs.ints("strides"), &padding = attrs.ints("padding");
  const Ints& dilation = attrs.ints("dilation");
  const int64_t in_per_group = x.shape()[1] / attrs.integer("groups");
  std::vector<double> y(static_cast<size_t>(num_elements(out)), 0);
  for (Index q(x.shape()); q; ++q)
    for (Index k(Shape(w.shape().begin() + 1, w.shape().end())); k; ++k) {
      Shape to = {q[0], q[1] / in_per_group * w.shape()[1] + k[0]};
      bool inside = true;
      for (size_t d = 0; d < spatial; ++d) {
        to.push_back(q[d + 2] * strides[d] - padding[d] + k[d + 1] * dilation[d]);
        inside = inside && to.back() >= 0 && to.back() < out[d + 2];
      }
      Shape tap = {q[1]};
      tap.insert(tap.end(), (*k).begin(), (*k).end());
      if (inside)
        y[static_cast<size_t>(position(out, to))] +=
            static_cast<double>(at(x, *q)) * static_cast<double>(at(w, tap));
    }
  return y;
}

TEST(ConvTest, AgreesWithTheDefinition) {
  register_all_ops();
  int checked = 0;
  for (const OpCase& c : op_cases()) {
    if (c.op.rfind("nn.conv", 0) != 0) continue;
    SCOPED_TRACE(c.to_string());
    Tensor x = random_tensor(c.args[0].type, 1), w = random_tensor(c.args[1].type, 2);
    Result<Expr> call = try_call(c.op, {c.args[0].type, c.args[1].type}, c.attrs);
    ASSERT_TRUE(call.ok()) << call.status().to_string();
    const Attrs& attrs = as<CallNode>(*call)->attrs;
    const Shape& out = (*call)->tensor_type().shape;
    auto naive = c.op.find("transpose") == std::string::npos ? naive_conv : naive_transpose;
    expect_near(run(c.op, {x, w}, c.attrs), naive(x, w, attrs, out));
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

TEST(ConvTest, SumsAreRoundedOnce) {
  // 2^24 + 1 + 1 - 2^24 in fp32 loses the ones when each sum is rounded.
  Tensor x = floats({1, 4, 1}, {16777216, 1, 1, -16777216});
  EXPECT_EQ(floats_of(run("nn.conv1d", {x, floats({1, 4, 1}, {1, 1, 1, 1})})),
            std::vector<float>{2});
}

TEST(ConvTest, DoubleAndHalfPrecision) {
  Tensor x = random_tensor({{1, 2, 5, 5}, DType::kFloat64}, 1);
  Tensor w = random_tensor({{3, 2, 3, 3}, DType::kFloat64}, 2);
  Tensor y = run("nn.conv2d", {x, w});
  Tensor narrow_x = run("cast", {x}, {{"dtype", DType::kBFloat16}});
  Tensor narrow_w = run("cast", {w}, {{"dtype", DType::kBFloat16}});
  Tensor narrow_y = run("nn.conv2d", {narrow_x, narrow_w});
  ASSERT_EQ(narrow_y.dtype(), DType::kBFloat16);
  for (int64_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(narrow_y.element_as_double(i), y.element_as_double(i), 0.05);
}

TEST(ConvTest, NothingToSumGivesZeros) {
  Tensor x = Tensor::zeros(DType::kFloat32, {1, 0, 4}),
         w = Tensor::zeros(DType::kFloat32, {2, 0, 3});
  EXPECT_EQ(floats_of(run("nn.conv1d", {x, w})), std::vector<float>(4, 0));
  Tensor none = Tensor::zeros(DType::kFloat32, {0, 3, 4});
  EXPECT_EQ(run("nn.conv1d", {none, Tensor::zeros(DType::kFloat32, {2, 3, 3})}).shape(),
            (Shape{0, 2, 2}));
}

}  // namespace
}  // namespace collage
