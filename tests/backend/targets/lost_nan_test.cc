// What is left where a variant loses a NaN, as some may by default: another argument of the
// operator, and never a number that nobody gave, such as an infinity.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/check.h"
#include "backend/targets/each_target.h"

namespace collage::testing {
namespace {

struct LostNan {
  const char* name;
  std::function<Expr(Graph&, const Expr& x, const Expr& y)> build;  // all of y is 3
  std::vector<float> others;
};

const std::vector<LostNan>& lost_nan_cases() {
  const auto with_number = [](const char* op, bool on_the_right) {
    return [=](Graph& g, const Expr& x, const Expr&) {
      const Expr c = g.scalar(-1);
      return g.call(op, on_the_right ? std::vector<Expr>{x, c} : std::vector<Expr>{c, x});
    };
  };
  const auto with_tensor = [](const char* op, bool on_the_right) {
    return [=](Graph& g, const Expr& x, const Expr& y) {
      return g.call(op, on_the_right ? std::vector<Expr>{x, y} : std::vector<Expr>{y, x});
    };
  };
  const auto between = [](double low, double high) {
    return [=](Graph& g, const Expr& x, const Expr&) {
      return g.call("clip", {x}, {{"a_min", low}, {"a_max", high}});
    };
  };
  static const std::vector<LostNan> cases = {
      {"min(x, -1)", with_number("minimum", true), {-1}},
      {"min(-1, x)", with_number("minimum", false), {-1}},
      {"max(x, -1)", with_number("maximum", true), {-1}},
      {"max(-1, x)", with_number("maximum", false), {-1}},
      {"min(x, y)", with_tensor("minimum", true), {3}},
      {"min(y, x)", with_tensor("minimum", false), {3}},
      {"max(x, y)", with_tensor("maximum", true), {3}},
      {"max(y, x)", with_tensor("maximum", false), {3}},
      {"clip(x, -2, 6)", between(-2, 6), {-2, 6}},
      {"clip(x, -inf, 6)", between(-HUGE_VAL, 6), {6}},
      {"clip(x, -2, inf)", between(-2, HUGE_VAL), {-2}},
      {"relu(x)", [](Graph& g, const Expr& x, const Expr&) { return g.call("nn.relu", {x}); }, {0}},
      {"min(max(x, y), -1)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("minimum", {g.call("maximum", {x, y}), g.scalar(-1)});
       },
       {-1}},
  };
  return cases;
}

TEST(LostNan, LeavesAnotherArgument) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Shape shape = {37};
  Tensor first = Tensor::zeros(DType::kFloat32, shape), second = first.clone();
  for (int64_t i = 0; i < first.size(); ++i) {
    first.data<float>()[i] = i % 3 == 0 ? kNan : i % 3 == 1 ? -kNan : static_cast<float>(i);
    second.data<float>()[i] = 3;
  }
  for_each_target([&](const Backend& backend, const Target& target) {
    for (const LostNan& c : lost_nan_cases()) {
      SCOPED_TRACE(c.name);
      Graph graph;
      const Expr x = graph.input(shape), y = graph.input(shape);
      const Expr value = c.build(graph, x, y);
      const bool takes_both = std::string(c.name).find('y') != std::string::npos;
      const Function function =
          make_function(takes_both ? std::vector<Expr>{x, y} : std::vector<Expr>{x}, value);
      std::vector<Tensor> inputs = {first, second};
      if (!takes_both) inputs.pop_back();
      run_variants(backend, target, function, {inputs},
                   [&](const Variant& variant, const std::vector<Tensor>&, const Tensor& got) {
                     for (int64_t i = 0; i < got.size(); ++i) {
                       const float number = got.data<float>()[i];
                       if (!std::isnan(first.data<float>()[i]) || std::isnan(number)) continue;
                       EXPECT_TRUE(variant.loses_nan &&
                                   std::count(c.others.begin(), c.others.end(), number) > 0)
                           << number << " at " << i;
                     }
                   });
    }
  });
}

}  // namespace
}  // namespace collage::testing
