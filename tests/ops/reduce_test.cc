// Reductions against sums over all indices; arguments of extremes, scans and top-k by hand.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

// Applies `step` to every element of the reduced axes for each kept position.
std::vector<double> naive_reduce(const Tensor& x, const std::vector<size_t>& axes, double initial,
                                 double (*step)(double, double)) {
  Shape kept = x.shape();
  for (size_t axis : axes) kept[axis] = 1;
  std::vector<double> y(static_cast<size_t>(num_elements(kept)), initial);
  for (Index i(x.shape()); i; ++i) {
    Shape to = *i;
    for (size_t axis : axes) to[axis] = 0;
    double& state = y[static_cast<size_t>(position(kept, to))];
    state = step(state, x.element_as_double(i.flat()));
  }
  return y;
}

TEST(ReduceTest, AgreesWithTheDefinition) {
  Tensor x = random({2, 3, 4, 5}, 1, {0.5, 1.5});
  for (std::vector<size_t> axes :
       std::vector<std::vector<size_t>>{{0}, {1}, {3}, {2, 3}, {0, 2}, {1, 3}, {0, 1, 2, 3}}) {
    const Ints list(axes.begin(), axes.end());
    expect_near(run("sum", {x}, {{"axis", list}}),
                naive_reduce(x, axes, 0, [](double a, double b) { return a + b; }));
    expect_near(run("prod", {x}, {{"axis", list}}),
                naive_reduce(x, axes, 1, [](double a, double b) { return a * b; }), 1e-5);
    expect_near(run("max", {x}, {{"axis", list}}),
                naive_reduce(x, axes, -9, [](double a, double b) { return std::max(a, b); }));
    expect_near(run("min", {x}, {{"axis", list}}),
                naive_reduce(x, axes, 9, [](double a, double b) { return std::min(a, b); }));
  }
}

TEST(ReduceTest, ShapesAndAxes) {
  Tensor x = random({2, 3, 4}, 1);
  EXPECT_EQ(run("sum", {x}).shape(), Shape{});
  EXPECT_EQ(run("sum", {x}, {{"axis", Ints{-1}}}).shape(), (Shape{2, 3}));
  EXPECT_EQ(run("sum", {x}, {{"axis", Ints{0, 2}}, {"keepdims", true}}).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(run("sum", {x}, {{"axis", Ints{1}}, {"exclude", true}}).shape(), Shape{3});
  EXPECT_EQ(floats_of(run("sum", {x}, {{"axis", Ints{}}})), floats_of(x));
}

TEST(ReduceTest, IntegersBoolsAndNothing) {
  Tensor x = ints({2, 3}, {1, 2, -6, 4, 5, 7});
  EXPECT_THAT(run("mean", {x}, {{"axis", Ints{1}}}).values<int64_t>(), ElementsAre(-1, 5));
  EXPECT_THAT(run("prod", {x}, {{"axis", Ints{0}}}).values<int64_t>(), ElementsAre(4, 10, -42));
  Tensor b = bools({2, 2}, {1, 0, 1, 1});
  EXPECT_THAT(run("all", {b}, {{"axis", Ints{1}}}).values<uint8_t>(), ElementsAre(0, 1));
  EXPECT_THAT(run("any", {bools({3}, {0, 0, 0})}).values<uint8_t>(), ElementsAre(0));
  Tensor none = Tensor::zeros(DType::kFloat32, {2, 0});
  const Attrs rows = {{"axis", Ints{1}}};
  EXPECT_THAT(run("sum", {none}, rows).values<float>(), ElementsAre(0, 0));
  EXPECT_THAT(run("prod", {none}, rows).values<float>(), ElementsAre(1, 1));
  EXPECT_THAT(run("max", {none}, rows).values<float>(), ElementsAre(-INFINITY, -INFINITY));
  EXPECT_TRUE(std::isnan(run("mean", {none}, rows).data<float>()[0]));
  EXPECT_FALSE(try_run("mean", {Tensor::zeros(DType::kInt64, {2, 0})}, rows).ok());
}

TEST(ReduceTest, SumsAreAccumulatedInDouble) {
  EXPECT_THAT(run("sum", {floats({4}, {16777216, 1, 1, -16777216})}).values<float>(),
              ElementsAre(2));
}

TEST(ArgReduceTest, TiesAndAxes) {
  Tensor x = floats({2, 4}, {1, 3, 3, 0, 5, 5, -1, -1});
  const Attrs first = {{"axis", int64_t{1}}};
  const Attrs last = {{"axis", int64_t{-1}}, {"select_last_index", true}};
  EXPECT_THAT(run("argmax", {x}, first).values<int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT(run("argmax", {x}, last).values<int64_t>(), ElementsAre(2, 1));
  EXPECT_THAT(run("argmin", {x}, first).values<int64_t>(), ElementsAre(3, 2));
  EXPECT_THAT(run("argmin", {x}, last).values<int64_t>(), ElementsAre(3, 3));
  Tensor columns = run("argmax", {x}, {{"axis", int64_t{0}}, {"keepdims", true}});
  EXPECT_EQ(columns.shape(), (Shape{1, 4}));
  EXPECT_THAT(columns.values<int64_t>(), ElementsAre(1, 1, 0, 0));
}

TEST(ArgReduceTest, TheFirstNanIsTheExtreme) {
  const float nan = std::nanf("");
  const Tensor x = floats({4, 2}, {1, 9, nan, 2, 7, nan, nan, 3});
  for (const char* op : {"argmax", "argmin"})
    EXPECT_THAT(run(op, {x}, {{"axis", int64_t{0}}}).values<int64_t>(), ElementsAre(1, 2)) << op;
}

TEST(ScanTest, Cumsum) {
  Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  auto cumsum = [&](int64_t axis, bool exclusive, bool reverse) {
    return floats_of(
        run("cumsum", {x}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}));
  };
  EXPECT_THAT(cumsum(1, false, false), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(cumsum(1, true, false), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(cumsum(1, false, true), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(cumsum(1, true, true), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_THAT(cumsum(0, false, false), ElementsAre(1, 2, 3, 5, 7, 9));
}

TEST(ScanTest, TopkKeepsTheOrderOfEqualElements) {
  Tensor x = floats({5}, {2, 7, 7, 1, 3});
  std::vector<Tensor> most = run_all("topk", {x}, {{"k", int64_t{3}}});
  EXPECT_THAT(most[0].values<float>(), ElementsAre(7, 7, 3));
  EXPECT_THAT(most[1].values<int64_t>(), ElementsAre(1, 2, 4));
  std::vector<Tensor> least = run_all("topk", {x}, {{"k", int64_t{2}}, {"largest", false}});
  EXPECT_THAT(least[0].values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(least[1].values<int64_t>(), ElementsAre(3, 0));
  std::vector<Tensor> columns =
      run_all("topk", {floats({2, 2}, {1, 4, 3, 2})}, {{"k", int64_t{1}}, {"axis", int64_t{0}}});
  EXPECT_THAT(columns[0].values<float>(), ElementsAre(3, 4));
  EXPECT_THAT(columns[1].values<int64_t>(), ElementsAre(1, 0));
}

// Of rows that threads share: against the whole row sorted, with equal elements and NaN.
TEST(ScanTest, TopkOfLongRows) {
  for (const auto& [extent, k] : {std::pair{200003, 1000}, {70000, 1}, {40000, 40000}}) {
    Tensor x = random({2, extent}, 7, {-50, 50});
    for (int64_t i = 0; i < x.size(); ++i)
      x.data<float>()[i] = i % 9973 == 5 ? std::nanf("") : std::round(x.data<float>()[i] * 20);
    for (const bool largest : {true, false}) {
      const auto found = run_all("topk", {x}, {{"k", int64_t{k}}, {"largest", largest}});
      for (int64_t row = 0; row < 2; ++row) {
        const float* values = x.data<float>() + row * extent;
        std::vector<int64_t> order(static_cast<size_t>(extent));
        std::iota(order.begin(), order.end(), int64_t{0});
        const auto key = [&](int64_t i) { return std::isnan(values[i]) ? HUGE_VAL : values[i]; };
        std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
          return largest ? key(i) > key(j) : key(i) < key(j);
        });
        order.resize(static_cast<size_t>(k));
        const int64_t* positions = found[1].data<int64_t>() + row * k;
        EXPECT_EQ(std::vector<int64_t>(positions, positions + k), order);
      }
    }
  }
}

TEST(ScanTest, CumsumOfLongRows) {
  Tensor x = Tensor::empty(DType::kInt64, {3, 300001});
  for (int64_t i = 0; i < x.size(); ++i) x.data<int64_t>()[i] = i * 7919 % 1000 - 400;
  for (const bool reverse : {false, true})
    for (const bool exclusive : {false, true})
      for (const Shape& shape : {x.shape(), Shape{300001, 3}, Shape{27, 100, 3, 1}}) {
        const int64_t stride = shape.back() == 1 || shape[0] != 3 ? 3 : 1,
                      count = shape[0] == 27 ? 100 : 300001;
        const Tensor part = Tensor::borrow(DType::kInt64, shape, x.raw());
        const int64_t axis = shape[0] == 27 ? 1 : shape[0] == 3 ? 1 : 0;
        const Tensor y =
            run("cumsum", {part}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
        for (int64_t row = 0; row < y.size() / count; ++row) {
          const int64_t base = row / stride * stride * count + row % stride;
          int64_t sum = 0;
          for (int64_t i = 0; i < count; ++i) {
            const int64_t at = base + (reverse ? count - 1 - i : i) * stride;
            const int64_t after = sum + part.data<int64_t>()[at];
            ASSERT_EQ(y.data<int64_t>()[at], exclusive ? sum : after) << row << " " << i;
            sum = after;
          }
        }
      }
}

TEST(ScanTest, Trilu) {
  Tensor x = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  auto trilu = [&](int64_t k, bool upper) {
    return values_of<int64_t>(run("trilu", {x}, {{"k", k}, {"upper", upper}}));
  };
  EXPECT_THAT(trilu(0, true), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(trilu(1, true), ElementsAre(0, 2, 3, 0, 0, 6));
  EXPECT_THAT(trilu(0, false), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(trilu(-1, false), ElementsAre(0, 0, 0, 4, 0, 0));
  EXPECT_THAT(trilu(INT64_MAX, true), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(trilu(INT64_MIN, true), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ScanTest, ReverseSequence) {
  Tensor x = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run("reverse_sequence", {x, ints({2}, {2, 3})}).values<int64_t>(),
              ElementsAre(2, 1, 3, 6, 5, 4));
  EXPECT_FALSE(try_run("reverse_sequence", {x, ints({2}, {2, 4})}).ok());
}

}  // namespace
}  // namespace collage
