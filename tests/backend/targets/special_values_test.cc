// Every elementwise operator on every backend of this build, in every variant, against the table of
// what is promised at special arguments (ops/special_values.h): alone, over whole vectors and over
// fewer numbers than one has, and in front of and behind what may be fused with it. Native's
// schedules for AVX2 and AVX-512 both.
#include "ops/special_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "backend/check.h"
#include "backend/targets/each_target.h"
#include "backend/targets/special_arguments.h"
#include "ir/op.h"
#include "ops/registry.h"

namespace collage::testing {
namespace {

// What is computed of x and y, two tensors of special arguments, with the operator f.
using Operator = std::function<Expr(Graph&, const Expr&)>;
struct Form {
  const char* name;
  std::function<Expr(Graph&, const Operator&, const Expr& x, const Expr& y)> build;
  double scale = 1;           // of the operator's value
  bool signs_of_zero = true;  // false: none is promised of what the operator takes
};

Expr clipped(Graph& g, const Expr& x, double low, double high) {
  return g.call("clip", {x}, {{"a_min", low}, {"a_max", high}});
}

const std::vector<Form>& chains() {
  static const std::vector<Form> forms = {
      {"clip(0.1 * (16 * f(x)))",
       [](Graph& g, const Operator& f, const Expr& x, const Expr&) {
         const Expr sixteen = g.call("multiply", {f(g, x), g.scalar(16)});
         return clipped(g, g.call("multiply", {sixteen, g.scalar(0.1f)}), -3, 640);
       },
       16},
      {"relu(f(clip(x)))",
       [](Graph& g, const Operator& f, const Expr& x, const Expr&) {
         return g.call("nn.relu", {f(g, clipped(g, x, -90, 90))});
       },
       1, false},
      {"clip(f(relu(x)))",
       [](Graph& g, const Operator& f, const Expr& x, const Expr&) {
         return clipped(g, f(g, g.call("nn.relu", {x})), -2, 640);
       },
       1, false},
      {"min(max(f(x), y), 50)",
       [](Graph& g, const Operator& f, const Expr& x, const Expr& y) {
         return g.call("minimum", {g.call("maximum", {f(g, x), y}), g.scalar(50)});
       }},
      {"where(x < y, f(min(y, x)), y)",
       [](Graph& g, const Operator& f, const Expr& x, const Expr& y) {
         return g.call("where", {g.call("less", {x, y}), f(g, g.call("minimum", {y, x})), y});
       },
       1, false},
  };
  return forms;
}

Tensor tensor_of(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty(DType::kFloat32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.raw(), values.data(), tensor.bytes());
  return tensor;
}

// Its first elements again, until there are that many.
std::vector<float> repeated(const std::vector<float>& values, size_t count) {
  std::vector<float> list;
  for (size_t i = 0; i < count; ++i) list.push_back(values[i % values.size()]);
  return list;
}

bool any_nan(const std::vector<Tensor>& inputs, int64_t at) {
  for (const Tensor& input : inputs)
    if (is_float(input.dtype()) && std::isnan(input.element_as_double(at))) return true;
  return false;
}

bool is_too_small(const Promise& promise, const std::vector<Tensor>& inputs, int64_t at) {
  if (promise.least_right == 0) return false;
  const double right = std::abs(inputs.back().element_as_double(at));
  return right != 0 && right < promise.least_right;
}

std::string describe(const std::vector<Tensor>& inputs, int64_t at) {
  std::string text;
  for (const Tensor& input : inputs)
    text += fmt::format("{}{:.9g}", text.empty() ? "" : ", ", input.element_as_double(at));
  return text;
}

// Where the values of one run are not as promised.
void check_values(const Promise& promise, const std::vector<Tensor>& inputs, const Tensor& expected,
                  const Tensor& got, bool may_lose_nan) {
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (may_lose_nan && any_nan(inputs, i)) continue;
    if (is_too_small(promise, inputs, i)) continue;
    const double value = expected.element_as_double(i), other = got.element_as_double(i);
    if (allows(promise, value, other, may_lose_nan)) continue;
    if (wrong++ < 3)
      first += fmt::format(" of ({}) {:.9g}, not {:.9g};", describe(inputs, i), other, value);
  }
  EXPECT_EQ(wrong, 0) << first;
}

// Of each variant that the backend offers, on each of the lists of inputs.
void check(const Promise& promise, const Backend& backend, const Target& target,
           const Function& function, const std::vector<std::vector<Tensor>>& lists) {
  run_variants(backend, target, function, lists,
               [&](const Variant& variant, const std::vector<Tensor>& inputs, const Tensor& got) {
                 check_values(promise, inputs, evaluate(function, inputs)[0], got,
                              variant.loses_nan);
               });
}

std::vector<std::vector<Tensor>> in_pieces(const std::vector<float>& values, size_t count) {
  std::vector<std::vector<Tensor>> pieces;
  for (size_t begin = 0; begin < values.size(); begin += count) {
    std::vector<float> piece;
    for (size_t i = 0; i < count; ++i) piece.push_back(values[(begin + i) % values.size()]);
    pieces.push_back({tensor_of(piece)});
  }
  return pieces;
}

class UnaryPromises : public ::testing::TestWithParam<size_t> {
 protected:
  const Promise& promise() const { return unary_promises()[GetParam()]; }
  Operator operation() const {
    return [promise = promise()](Graph& g, const Expr& x) {
      return g.call(promise.op, {x}, promise.attrs);
    };
  }
};

TEST_P(UnaryPromises, AreKeptAlone) {
  const std::vector<float> arguments = special_arguments(promise());
  const size_t whole = (arguments.size() + 63) / 64 * 64;
  for_each_target([&](const Backend& backend, const Target& target) {
    // Whole vectors; fewer numbers than a vector has.
    for (const size_t count : {whole, size_t{7}}) {
      SCOPED_TRACE(fmt::format("{} numbers", count));
      Graph graph;
      const Function function =
          graph.function(operation()(graph, graph.input({static_cast<int64_t>(count)})));
      check(promise(), backend, target, function,
            in_pieces(repeated(arguments, std::max(whole, count)), count));
    }
  });
}

TEST_P(UnaryPromises, AreKeptInChains) {
  Graph alone;
  const Expr result = operation()(alone, alone.input({1}));
  if (result->tensor_type().dtype != DType::kFloat32) GTEST_SKIP() << "no real numbers follow";
  std::vector<float> arguments = special_arguments(promise());
  arguments = repeated(arguments, (arguments.size() + 15) / 16 * 16 + 5);
  std::vector<float> others = arguments;
  std::rotate(others.begin(), others.begin() + 29, others.end());
  for_each_target([&](const Backend& backend, const Target& target) {
    for (const Form& form : chains()) {
      SCOPED_TRACE(form.name);
      Graph graph;
      const Shape shape = {static_cast<int64_t>(arguments.size())};
      const Expr x = graph.input(shape), y = graph.input(shape);
      const Expr value = form.build(graph, operation(), x, y);
      const bool takes_both = graph.function(value)->params.size() == 2 &&
                              std::string(form.name).find('y') != std::string::npos;
      std::vector<Tensor> inputs = {tensor_of(arguments), tensor_of(others)};
      if (!form.signs_of_zero)
        for (Tensor& input : inputs)
          for (int64_t i = 0; i < input.size(); ++i)
            if (input.data<float>()[i] == 0) input.data<float>()[i] = 0.0f;
      if (!takes_both) inputs.pop_back();
      const Function function =
          make_function(takes_both ? std::vector<Expr>{x, y} : std::vector<Expr>{x}, value);
      Promise scaled = promise();
      scaled.absolute *= form.scale;
      scaled.relative *= 2;
      check(scaled, backend, target, function, {inputs});
    }
  });
}

std::string name_of(const std::vector<Promise>& table, size_t at) {
  std::string name = table[at].op + "_" + std::to_string(at);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Operators, UnaryPromises,
                         ::testing::Range(size_t{0}, unary_promises().size()),
                         [](const auto& info) { return name_of(unary_promises(), info.param); });

class BinaryPromises : public ::testing::TestWithParam<size_t> {};

// Of all pairs, and of each number on the right as a constant.
TEST_P(BinaryPromises, AreKept) {
  const Promise& promise = binary_promises()[GetParam()];
  const std::vector<float> numbers = special_pair_arguments(promise);
  std::vector<float> left, right;
  for (float a : numbers)
    for (float b : numbers) left.push_back(a), right.push_back(b);
  // Whole vectors and some numbers more.
  left = repeated(left, (left.size() + 15) / 16 * 16 + 5);
  right = repeated(right, left.size());
  const Shape shape = {static_cast<int64_t>(left.size())};
  for_each_target([&](const Backend& backend, const Target& target) {
    Graph graph;
    const Expr x = graph.input(shape), y = graph.input(shape);
    const Function function = graph.function(graph.call(promise.op, {x, y}, promise.attrs));
    check(promise, backend, target, function, {{tensor_of(left), tensor_of(right)}});
  });
}

TEST_P(BinaryPromises, AreKeptWithConstants) {
  const Promise& promise = binary_promises()[GetParam()];
  if (!promise.attrs.entries().empty()) GTEST_SKIP() << "takes no single number";
  const std::vector<float> numbers = special_pair_arguments(promise);
  const Tensor arguments = tensor_of(repeated(numbers, 37));
  for_each_target([&](const Backend& backend, const Target& target) {
    for (float number : {0.0f, 0.5f, -0.5f, -1.0f, 2.0f, 3e38f})
      for (const bool on_the_right : {true, false}) {
        if (promise.op == "divide" && on_the_right && number == 0) continue;  // Halide refuses it
        SCOPED_TRACE(fmt::format("{} on the {}", number, on_the_right ? "right" : "left"));
        Graph graph;
        const Expr x = graph.input(arguments.shape()), c = graph.scalar(number);
        const Function function = graph.function(graph.call(
            promise.op, on_the_right ? std::vector<Expr>{x, c} : std::vector<Expr>{c, x}));
        check(promise, backend, target, function, {{arguments}});
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Operators, BinaryPromises,
                         ::testing::Range(size_t{0}, binary_promises().size()),
                         [](const auto& info) { return name_of(binary_promises(), info.param); });

Expr times(Graph& g, const Expr& a, const Expr& b) { return g.call("multiply", {a, b}); }
Expr over(Graph& g, const Expr& a, const Expr& b) { return g.call("divide", {a, b}); }

// Of an operator with itself, and what compilers make of sums and products of such numbers.
TEST(SpecialValues, AreNotSimplifiedAway) {
  using Build = std::function<Expr(Graph&, const Expr&, const Expr&)>;
  const std::vector<std::pair<const char*, Build>> cases = {
      {"x == x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("equal", {x, x});
       }},
      {"x != x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("not_equal", {x, x});
       }},
      {"x - x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("subtract", {x, x});
       }},
      {"x / x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("divide", {x, x});
       }},
      {"(x + 1) * y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("multiply", {g.call("add", {x, g.scalar(1)}), y});
       }},
      {"(1 - x) * y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("multiply", {g.call("subtract", {g.scalar(1), x}), y});
       }},
      {"(x + y) - y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("subtract", {g.call("add", {x, y}), y});
       }},
      {"(x + 2^23) - 2^23",
       [](Graph& g, const Expr& x, const Expr&) {
         const Expr large = g.scalar(0x1.8p23f);
         return g.call("subtract", {g.call("add", {x, large}), large});
       }},
      {"(x * 1e30) * 1e-30",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("multiply", {g.call("multiply", {x, g.scalar(1e30f)}), g.scalar(1e-30f)});
       }},
      {"(x * 1e30) / 1e30",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("divide", {g.call("multiply", {x, g.scalar(1e30f)}), g.scalar(1e30f)});
       }},
      {"x / sqrt(y)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("divide", {x, g.call("sqrt", {y})});
       }},
      {"x * sigmoid(y)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("multiply", {x, g.call("sigmoid", {y})});
       }},
      {"exp(x) / (1 + exp(x))",
       [](Graph& g, const Expr& x, const Expr&) {
         const Expr e = g.call("exp", {x});
         return g.call("divide", {e, g.call("add", {g.scalar(1), e})});
       }},
      {"silu(x) * y",
       [](Graph& g, const Expr& x, const Expr& y) { return times(g, g.call("nn.silu", {x}), y); }},
      {"16 * (x * sigmoid(y))",
       [](Graph& g, const Expr& x, const Expr& y) {
         return times(g, g.scalar(16), times(g, x, g.call("sigmoid", {y})));
       }},
      {"x * y * x",
       [](Graph& g, const Expr& x, const Expr& y) { return times(g, times(g, x, y), x); }},
      {"-(x * y) * y",
       [](Graph& g, const Expr& x, const Expr& y) {
         return times(g, g.call("negative", {times(g, x, y)}), y);
       }},
      {"(x * 16) * (y * 0.1)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return times(g, times(g, x, g.scalar(16)), times(g, y, g.scalar(0.1f)));
       }},
      {"(x / 16) * y", [](Graph& g, const Expr& x,
                          const Expr& y) { return times(g, over(g, x, g.scalar(16)), y); }},
      {"(x * y) / 2",
       [](Graph& g, const Expr& x, const Expr& y) { return over(g, times(g, x, y), g.scalar(2)); }},
      {"(x * y) / x",
       [](Graph& g, const Expr& x, const Expr& y) { return over(g, times(g, x, y), x); }},
      {"x / (x * y)",
       [](Graph& g, const Expr& x, const Expr& y) { return over(g, x, times(g, x, y)); }},
      {"(x * y) * (1 / x)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return times(g, times(g, x, y), over(g, g.scalar(1), x));
       }},
      {"16 * (x / y)", [](Graph& g, const Expr& x,
                          const Expr& y) { return times(g, g.scalar(16), over(g, x, y)); }},
      {"(x / y) * x",
       [](Graph& g, const Expr& x, const Expr& y) { return times(g, over(g, x, y), x); }},
      {"sqrt(x) * sqrt(y)",
       [](Graph& g, const Expr& x, const Expr& y) {
         return times(g, g.call("sqrt", {x}), g.call("sqrt", {y}));
       }},
      {"x * rsqrt(x)",
       [](Graph& g, const Expr& x, const Expr&) { return times(g, x, g.call("rsqrt", {x})); }},
      {"x * y + x * x",
       [](Graph& g, const Expr& x, const Expr& y) {
         return g.call("add", {times(g, x, y), times(g, x, x)});
       }},
      {"x * 2 - x",
       [](Graph& g, const Expr& x, const Expr&) {
         return g.call("subtract", {times(g, x, g.scalar(2)), x});
       }},
      {"abs(x) * where(x < y, x, y)",
       [](Graph& g, const Expr& x, const Expr& y) {
         const Expr least = g.call("where", {g.call("less", {x, y}), x, y});
         return g.call("multiply", {g.call("abs", {x}), least});
       }},
  };
  const std::vector<float> numbers = special_pair_arguments({});
  std::vector<float> left, right;
  for (float a : numbers)
    for (float b : numbers) left.push_back(a), right.push_back(b);
  left = repeated(left, (left.size() + 15) / 16 * 16 + 5);
  right = repeated(right, left.size());
  const Shape shape = {static_cast<int64_t>(left.size())};
  for_each_target([&](const Backend& backend, const Target& target) {
    if (!compiler_of(backend).empty()) return;  // libraries make one product of two by constants
    for (const auto& [name, build] : cases) {
      SCOPED_TRACE(name);
      Graph graph;
      const Expr x = graph.input(shape), y = graph.input(shape);
      const Expr value = build(graph, x, y);
      const bool takes_both = std::string(name).find('y') != std::string::npos;
      std::vector<Tensor> inputs = {tensor_of(left), tensor_of(right)};
      if (!takes_both) inputs.pop_back();
      const Function function =
          make_function(takes_both ? std::vector<Expr>{x, y} : std::vector<Expr>{x}, value);
      check({name, {}, {}, 2e-6}, backend, target, function, {inputs});
    }
  });
}

// Elementwise operators on real numbers without a promise, and why.
const std::map<std::string, std::string>& unpromised() {
  static const std::map<std::string, std::string> operators = {
      {"cast", "conversions have a rule of their own"},
      {"reinterpret", "gives the same bits"},
      {"where", "gives one of its arguments; part of the chains"},
      {"nn.bias_add", "an addition"},
      {"logical_and", "of bools"},
      {"logical_or", "of bools"},
      {"logical_xor", "of bools"},
      {"logical_not", "of bools"},
      {"bitwise_and", "of integers"},
      {"bitwise_or", "of integers"},
      {"bitwise_xor", "of integers"},
      {"bitwise_not", "of integers"},
      {"left_shift", "of integers"},
      {"right_shift", "of integers"},
      {"qnn.quantize", "gives integers"},
      {"qnn.dequantize", "takes integers"},
  };
  return operators;
}

TEST(SpecialValues, ArePromisedOfEveryElementwiseOperator) {
  register_all_ops();
  for (const OpDef* op : all_ops()) {
    if (op->kind != FusionKind::kElementwise && op->kind != FusionKind::kBroadcast) continue;
    size_t promised = unpromised().count(op->name);
    for (const auto* table : {&unary_promises(), &binary_promises()})
      for (const Promise& promise : *table) promised += promise.op == op->name;
    EXPECT_GE(promised, 1U) << op->name;
  }
}

}  // namespace
}  // namespace collage::testing
