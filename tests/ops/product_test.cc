// Dense, matmul, bias_add and attention against plain loops.
#include <cmath>

#include "op_test.h"
#include "ops/cases.h"

namespace collage {
namespace {

// numpy.matmul on operands whose last two dimensions may be swapped.
std::vector<double> naive_matmul(const Tensor& a, const Tensor& b, bool ta, bool tb,
                                 const Shape& out) {
  auto element = [](const Tensor& t, const Shape& out_index, int64_t row, int64_t column,
                    bool swapped) {
    Shape index(t.shape().size());
    size_t lead = out_index.size() - index.size();
    for (size_t d = 0; d + 2 < index.size(); ++d)
      index[d] = t.shape()[d] == 1 ? 0 : out_index[lead + d];
    index[index.size() - 2] = swapped ? column : row;
    index[index.size() - 1] = swapped ? row : column;
    return t.element_as_double(position(t.shape(), index));
  };
  const int64_t depth = a.shape()[a.shape().size() - (ta ? 2 : 1)];
  std::vector<double> y;
  for (Index p(out); p; ++p) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += element(a, *p, p[out.size() - 2], k, ta) * element(b, *p, k, p[out.size() - 1], tb);
    y.push_back(sum);
  }
  return y;
}

TEST(ProductTest, MatmulAgreesWithTheDefinition) {
  for (const char* op : {"nn.matmul", "nn.batch_matmul"})
    for (const OpCase& c : op_cases(op)) {
      SCOPED_TRACE(c.to_string());
      for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
        ValueRange range = dtype == DType::kInt32 ? ValueRange{-9, 9} : ValueRange{};
        Tensor a = random_tensor({c.args[0].type.shape, dtype}, 1, range);
        Tensor b = random_tensor({c.args[1].type.shape, dtype}, 2, range);
        Tensor y = run(op, {a, b}, c.attrs);
        expect_near(y, naive_matmul(a, b, c.attrs.flag("transpose_a"), c.attrs.flag("transpose_b"),
                                    y.shape()));
      }
    }
}

TEST(ProductTest, DenseIsAProductWithTransposedWeights) {
  for (const OpCase& c : op_cases("nn.dense")) {
    SCOPED_TRACE(c.to_string());
    Tensor x = random_tensor(c.args[0].type, 1), w = random_tensor(c.args[1].type, 2);
    Tensor y = run("nn.dense", {x, w});
    Shape rows = {x.size() / w.shape()[1], w.shape()[1]};
    expect_near(y, naive_matmul(x.reshaped(rows), w, false, true, {rows[0], w.shape()[0]}));
  }
}

TEST(ProductTest, BlocksAndTails) {  // extents around the block sizes of blocked_product
  for (auto [m, n, k] : {std::array<int64_t, 3>{65, 129, 257},
                         {64, 128, 256},
                         {193, 257, 129},
                         {97, 65, 17},
                         {3, 17, 300},
                         {1, 130, 1},
                         {67, 1, 5}}) {
    Tensor a = random({m, k}, 1), b = random({k, n}, 2);
    expect_near(run("nn.matmul", {a, b}), naive_matmul(a, b, false, false, {m, n}));
  }
}

TEST(ProductTest, EmptyDepthGivesZeros) {
  Tensor y = run("nn.matmul",
                 {Tensor::zeros(DType::kFloat32, {2, 0}), Tensor::zeros(DType::kFloat32, {0, 3})});
  EXPECT_EQ(floats_of(y), std::vector<float>(6, 0));
}

TEST(ProductTest, BiasAdd) {
  Tensor x = floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), b = floats({2}, {10, 20});
  EXPECT_EQ(floats_of(run("nn.bias_add", {x, b})),
            (std::vector<float>{10, 11, 22, 23, 14, 15, 26, 27}));
  EXPECT_EQ(floats_of(run("nn.bias_add", {x, b}, {{"axis", int64_t{-1}}})),
            (std::vector<float>{10, 21, 12, 23, 14, 25, 16, 27}));
}

TEST(ProductTest, AttentionIsSoftmaxBetweenProducts) {
  for (const OpCase& c : op_cases("nn.attention")) {
    SCOPED_TRACE(c.to_string());
    std::vector<Tensor> in;
    for (const OpArg& a : c.args) in.push_back(random_tensor(a.type, in.size(), a.range));
    Tensor scores = run("nn.matmul", {in[0], in[1]}, {{"transpose_b", true}});
    scores = run("multiply", {scores, Tensor::scalar(static_cast<float>(c.attrs.real("scale")))});
    if (in.size() == 4) scores = run("add", {scores, in[3]});
    if (c.attrs.flag("causal")) {
      const int64_t t = scores.shape().back();
      for (int64_t i = 0; i < scores.size(); ++i)
        if (i % t > i / t % scores.shape()[scores.shape().size() - 2])
          scores.data<float>()[i] = -INFINITY;
    }
    Tensor expected = run("nn.matmul", {run("nn.softmax", {scores}), in[2]});
    Tensor actual = run("nn.attention", in, c.attrs);
    ASSERT_EQ(actual.shape(), expected.shape());
    for (int64_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual.data<float>()[i], expected.data<float>()[i], 1e-5);
  }
}

TEST(ProductTest, AttentionOfAHiddenRowIsNaNOrZero) {
  const Tensor ones = floats({2, 1}, {1, 1});
  const Tensor mask = floats({2, 2}, {0, 0, -INFINITY, -INFINITY});
  const std::vector<Tensor> in = {ones, ones, floats({2, 1}, {3, 5}), mask};
  const std::vector<float> plain = floats_of(run("nn.attention", in, {{"scale", 1.0}}));
  EXPECT_EQ(plain[0], 4);
  EXPECT_TRUE(std::isnan(plain[1]));
  EXPECT_EQ(floats_of(run("nn.attention", in, {{"scale", 1.0}, {"zero_nan", true}})),
            (std::vector<float>{4, 0}));
}

}  // namespace
}  // namespace collage
