// Cases of the elementwise and broadcasting operators, and of random numbers.
#include "ops/cases/cases_list.h"

namespace collage {

namespace {

struct UnaryCase {
  const char* op;
  ValueRange range = {-3, 3};  // where the function is defined and finite
  Attrs attrs = {};
};

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {"nn.relu"},
      {"nn.leaky_relu", {-3, 3}, {{"alpha", 0.1}}},
      {"clip", {-9, 9}, {{"a_min", 0.0}, {"a_max", 6.0}}},
      {"sigmoid", {-8, 8}},
      {"tanh"},
      {"exp"},
      {"log", {0.01, 5}},
      {"sqrt", {0, 5}},
      {"rsqrt", {0.1, 5}},
      {"erf"},
      {"abs"},
      {"negative"},
      {"ceil", {-20, 20}},
      {"floor", {-20, 20}},
      {"round", {-20, 20}},
      {"trunc", {-20, 20}},
      {"sign"},
      {"sin"},
      {"cos"},
      {"tan", {-1.4, 1.4}},
      {"asin", {-1, 1}},
      {"acos", {-1, 1}},
      {"atan"},
      {"sinh"},
      {"cosh"},
      {"asinh"},
      {"acosh", {1, 5}},
      {"atanh", {-0.9, 0.9}},
      {"reciprocal", {0.1, 5}},
      {"nn.gelu", {-4, 4}, {{"approximate", std::string("none")}}},
      {"nn.gelu", {-4, 4}, {{"approximate", std::string("tanh")}}},
      {"nn.silu", {-6, 6}},
      {"nn.hard_sigmoid", {-6, 6}, {{"alpha", 0.2}, {"beta", 0.5}}},
      {"nn.hard_swish", {-6, 6}},
      {"nn.elu", {-3, 3}, {{"alpha", 0.7}}},
      {"nn.selu"},
      {"nn.celu", {-3, 3}, {{"alpha", 1.5}}},
      {"nn.softplus", {-20, 20}},
      {"nn.softsign"},
      {"nn.mish", {-6, 6}},
      {"nn.thresholded_relu", {-3, 3}, {{"alpha", 0.5}}},
      {"nn.shrink", {-3, 3}, {{"lambd", 0.5}, {"bias", 0.25}}},
      {"isnan"},
      {"isinf"},
      {"copy"},
      {"cast", {-100, 100}, {{"dtype", DType::kInt32}}},
      {"cast", {-100, 100}, {{"dtype", DType::kFloat64}}},
      {"cast", {-1, 1}, {{"dtype", DType::kBool}}},
  };
  return cases;
}

void add_unary_cases(Cases& cases) {
  for (const UnaryCase& u : unary_cases()) {
    cases.push_back({u.op, {f32({1, 16, 7, 7}, u.range)}, u.attrs});
    cases.push_back({u.op, {f32({3, 5}, u.range)}, u.attrs});
    cases.push_back({u.op, {f32({}, u.range)}, u.attrs});
  }
  for (const char* op : {"nn.relu", "abs", "negative", "sign", "bitwise_not"})
    cases.push_back({op, {arg(DType::kInt32, {4, 3}, {-50, 50})}});
  cases.push_back({"bitwise_not", {arg(DType::kInt64, {7}, {-50, 50})}});
  cases.push_back({"logical_not", {boolean({2, 5})}});
  cases.push_back({"logical_not", {boolean({1})}});
  for (DType from : {DType::kInt64, DType::kInt32, DType::kUInt8})
    cases.push_back({"cast", {arg(from, {5, 3}, {0, 100})}, {{"dtype", DType::kFloat32}}});
  cases.push_back({"cast", {f32({2, 3, 9, 11}, {-100, 100})}, {{"dtype", DType::kFloat16}}});
  for (DType to : {DType::kFloat32, DType::kInt32, DType::kBool})
    cases.push_back({"cast", {arg(DType::kFloat16, {7, 37}, {-3, 3})}, {{"dtype", to}}});
  cases.push_back(
      {"cast", {arg(DType::kInt64, {19}, {-5000, 5000})}, {{"dtype", DType::kFloat16}}});
  cases.push_back({"cast", {boolean({6})}, {{"dtype", DType::kFloat32}}});
  cases.push_back({"cast", {arg(DType::kInt64, {4}, {-9, 9})}, {{"dtype", DType::kInt32}}});
  cases.push_back({"reinterpret", {f32({3, 5})}, {{"dtype", DType::kInt32}}});
  cases.push_back({"reinterpret", {arg(DType::kInt8, {7}, {-9, 9})}, {{"dtype", DType::kUInt8}}});
  cases.push_back({"reinterpret",
                   {arg(DType::kInt64, {2, 1}, {4.6e18, 4.7e18})},
                   {{"dtype", DType::kFloat64}}});
  cases.push_back({"reinterpret", {boolean({4})}, {{"dtype", DType::kInt8}}});
}

void add_random_cases(Cases& cases) {
  const OpArg key = arg(DType::kInt64, {}, {-1000, 1000});
  cases.push_back({"random.run", {}, {}});
  cases.push_back({"random.uniform", {key}, {{"shape", Ints{2, 3, 5}}}});
  cases.push_back({"random.uniform", {key, key}, {{"shape", Ints{37}}}});
  cases.push_back(
      {"random.uniform",
       {key},
       {{"shape", Ints{4099}}, {"low", -2.0}, {"high", 3.0}, {"dtype", DType::kFloat64}}});
  cases.push_back({"random.normal", {key, key}, {{"shape", Ints{7, 1}}}});
  cases.push_back(
      {"random.normal", {key}, {{"shape", Ints{3, 4099}}, {"mean", 1.5}, {"scale", 0.25}}});
}

const std::vector<std::pair<Shape, Shape>>& broadcast_pairs() {
  static const std::vector<std::pair<Shape, Shape>> pairs = {
      {{1, 16, 7, 7}, {1, 16, 7, 7}},
      {{3, 5}, {}},
      {{}, {4}},
      {{1, 8, 5, 5}, {8, 1, 1}},
      {{4, 1}, {1, 7}},
      {{2, 1, 3, 1}, {5, 1, 4}},
      {{2, 6, 33}, {33}},
  };
  return pairs;
}

void add_binary_cases(Cases& cases) {
  auto add = [&](const char* op, DType dtype, ValueRange left, ValueRange right) {
    for (const auto& [a, b] : broadcast_pairs())
      cases.push_back({op, {arg(dtype, a, left), arg(dtype, b, right)}});
  };
  for (const char* op : {"add", "subtract", "multiply", "maximum", "minimum"}) {
    add(op, DType::kFloat32, {-3, 3}, {-3, 3});
    add(op, DType::kInt64, {-30, 30}, {-30, 30});
    cases.push_back({op, {f32({1, 32, 14, 14}), weight({32, 1, 1})}});
    cases.push_back({op, {f32({6, 10}), weight({}, {0.5, 1})}});
  }
  add("divide", DType::kFloat32, {-3, 3}, {0.5, 3});
  add("divide", DType::kInt32, {-99, 99}, {1, 9});
  add("power", DType::kFloat32, {0.1, 3}, {-2, 2});
  add("mod", DType::kFloat32, {-9, 9}, {1, 3});
  add("mod", DType::kInt32, {-99, 99}, {1, 9});
  add("floor_mod", DType::kFloat32, {-9, 9}, {1, 3});
  add("floor_mod", DType::kInt64, {-99, 99}, {1, 9});
  for (const char* op : {"left_shift", "right_shift"}) add(op, DType::kInt32, {0, 1000}, {0, 8});
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    add(op, DType::kInt32, {-99, 99}, {-99, 99});
    add(op, DType::kBool, {}, {});
  }
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    add(op, DType::kFloat32, {-3, 3}, {-3, 3});
    add(op, DType::kInt64, {0, 3}, {0, 3});
  }
  for (const char* op : {"logical_and", "logical_or", "logical_xor"}) add(op, DType::kBool, {}, {});
}

}  // namespace

void add_elementwise_cases(Cases& cases) {
  add_unary_cases(cases);
  add_random_cases(cases);
  add_binary_cases(cases);
  cases.push_back({"where", {boolean({2, 5, 7}), f32({2, 5, 7}), f32({2, 5, 7})}});
  cases.push_back({"where", {boolean({1, 1, 6, 6}), f32({2, 3, 6, 6}), weight({}, {-9, -9})}});
  cases.push_back({"where", {boolean({4, 1}), f32({3}), f32({2, 1, 1})}});
  cases.push_back({"nn.prelu", {f32({1, 16, 7, 7}), weight({16})}, {{"axis", int64_t{1}}}});
  cases.push_back({"nn.prelu", {f32({3, 5}), weight({5})}, {{"axis", int64_t{-1}}}});
}

}  // namespace collage
