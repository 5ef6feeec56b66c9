// Operators on integers at the limits of their types, on every backend that takes them: sums and
// products wrap around as the interpreter's do, alone and where a compiler could take an overflow
// for impossible, and what is compared or moved keeps all its bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "backend/check.h"
#include "backend/targets/each_target.h"
#include "runtime/dispatch.h"

namespace collage::testing {
namespace {

template <typename T>
std::vector<int64_t> limits() {
  const auto least = static_cast<int64_t>(std::numeric_limits<T>::min()),
             most = static_cast<int64_t>(std::numeric_limits<T>::max());
  return {least, least + 1, most - 1, most, least < 0 ? -1 : 3, 0, 1, 2};
}

Tensor tensor_of(DType dtype, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  dispatch_integer(dtype, [&]<typename T>(Tag<T>) {
    for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = static_cast<T>(values[i]);
  });
  return tensor;
}

using Build = std::function<Expr(Graph&, const Expr& x, const Expr& y)>;
Build binary(const char* op) {
  return [op](Graph& g, const Expr& x, const Expr& y) { return g.call(op, {x, y}); };
}
Build unary(const char* op) {
  return [op](Graph& g, const Expr& x, const Expr& y) {
    return g.call("add", {g.call(op, {x}), y});
  };
}

DType dtype_of(const Expr& x) { return x->tensor_type().dtype; }

struct Case {
  const char* name;
  Build build;
  // Right arguments that the operator takes: at least that, and not zero.
  int64_t least = std::numeric_limits<int64_t>::min();
  bool zero = true;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"add", binary("add")},
      {"subtract", binary("subtract")},
      {"multiply", binary("multiply")},
      {"maximum", binary("maximum")},
      {"minimum", binary("minimum")},
      {"divide", binary("divide"), std::numeric_limits<int64_t>::min(), false},
      {"mod", binary("mod"), std::numeric_limits<int64_t>::min(), false},
      {"floor_mod", binary("floor_mod"), std::numeric_limits<int64_t>::min(), false},
      {"left_shift", binary("left_shift"), 0},
      {"right_shift", binary("right_shift"), 0},
      {"bitwise_and", binary("bitwise_and")},
      {"bitwise_or", binary("bitwise_or")},
      {"bitwise_xor", binary("bitwise_xor")},
      {"equal", binary("equal")},
      {"less", binary("less")},
      {"greater_equal", binary("greater_equal")},
      {"abs", unary("abs")},
      {"negative", unary("negative")},
      {"nn.relu", unary("nn.relu")},
      {"sign", unary("sign")},
      {"bitwise_not", unary("bitwise_not")},
      {"x + y < x",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("less", {g.call("add", {x, y}), x});
       }},
      {"(x + y) - y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("subtract", {g.call("add", {x, y}), y});
       }},
      {"max(x + y, x)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("maximum", {g.call("add", {x, y}), x});
       }},
      {"x * 2 = y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("equal", {g.call("add", {x, x}), y});
       }},
      {"-x < y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("less", {g.call("negative", {x}), y});
       }},
      {"x < y ? x : y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("where", {g.call("less", {x, y}), x, y});
       }},
      {"(x = y) + x",
       [](Graph& g, const Expr& x, const Expr& y) {
         const Expr same = g.call("cast", {g.call("equal", {x, y})}, {{"dtype", dtype_of(x)}});
         return g.call("add", {same, x});
       }},
      {"x + y != 0",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("cast", {g.call("add", {x, y})}, {{"dtype", DType::kBool}});
       }},
      {"x, reversed, + y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("add", {g.call("reverse", {x}, {{"axis", Ints{0}}}), y});
       }},
      {"x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("reverse", {x}, {{"axis", Ints{0}}});
       }},
      {"x, as real numbers",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("cast", {x}, {{"dtype", DType::kFloat32}});
       }},
      {"x != 0",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("cast", {x}, {{"dtype", DType::kBool}});
       }},
      {"x and y in rows, twice",
       [](Graph& g, const Expr& x, const Expr& y) {
         const Expr rows = g.call("stack", {make_tuple({x, y})}, {{"axis", int64_t{0}}});
         return g.call("tile", {g.call("transpose", {rows})}, {{"reps", Ints{2, 1}}});
       }},
      {"x from place to place",
       [](Graph& g, const Expr& x, const Expr&) {
         const int64_t size = x->tensor_type().shape[0];
         std::vector<int64_t> places;
         for (int64_t i = 0; i < size; ++i) places.push_back((i * 5 + 3) % size);
         return g.call("take", {x, make_constant(Tensor::from<int64_t>({size}, places))});
       }},
      {"one at x",
       [](Graph& g, const Expr& x, const Expr&) {
         const auto constant = [](int32_t value) { return make_constant(Tensor::scalar(value)); };
         return g.call("one_hot", {x, constant(16777217), constant(-1)}, {{"depth", int64_t{3}}});
       }},
      {"x with the most around it",
       [](Graph& g, const Expr& x, const Expr&) {
         const DType dtype = dtype_of(x);
         const Expr most = make_constant(dispatch_integer(dtype, []<typename T>(Tag<T>) {
           return Tensor::scalar<T>(std::numeric_limits<T>::max());
         }));
         return g.call("nn.pad", {x, most}, {{"pad_width", std::vector<Ints>{{1, 2}}}});
       }},
  };
  return list;
}

std::string element(const Tensor& tensor, int64_t at) {
  return is_float(tensor.dtype()) ? fmt::format("{:.9g}", tensor.element_as_double(at))
                                  : std::to_string(tensor.element_as_int64(at));
}

class IntegerLimits : public ::testing::TestWithParam<DType> {};

TEST_P(IntegerLimits, WrapAround) {
  const DType dtype = GetParam();
  const std::vector<int64_t> numbers =
      dispatch_integer(dtype, [&]<typename T>(Tag<T>) { return limits<T>(); });
  for_each_target([&](const Backend& backend, const Target& target) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.name);
      std::vector<int64_t> left, right;
      for (int64_t a : numbers)
        for (int64_t b : numbers)
          if (b >= c.least && (c.zero || b != 0)) left.push_back(a), right.push_back(b);
      Graph graph;
      const Shape shape = {static_cast<int64_t>(left.size())};
      const Expr x = graph.input(shape, dtype), y = graph.input(shape, dtype);
      const Function function = graph.function(c.build(graph, x, y));
      run_variants(backend, target, function, {{tensor_of(dtype, left), tensor_of(dtype, right)}},
                   [&](const Variant&, const std::vector<Tensor>& inputs, const Tensor& got) {
                     const Tensor expected = evaluate(function, inputs)[0];
                     for (int64_t i = 0; i < got.size(); ++i)
                       EXPECT_EQ(element(got, i), element(expected, i))
                           << "at " << i << ", of " << element(inputs[0], i % inputs[0].size())
                           << " and " << element(inputs[1], i % inputs[1].size());
                   });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, IntegerLimits,
                         ::testing::Values(DType::kInt8, DType::kInt16, DType::kInt32,
                                           DType::kInt64, DType::kUInt8, DType::kUInt16,
                                           DType::kUInt32, DType::kUInt64),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace collage::testing
