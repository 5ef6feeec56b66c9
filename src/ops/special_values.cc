#include "ops/special_values.h"

#include <cmath>

namespace collage {

namespace {

// A sum of numbers near 1 that is nearly 0, or a logarithm of what is nearly 1.
constexpr double kCancelled = 3e-7;
// A number times one below 2^-126 that may be taken for zero.
constexpr double kSmallProduct = 0x1p-118;

// Where e^x is first a normal number, and last finite; where logistic functions end.
const std::vector<float>& ends_of_exp() {
  static const std::vector<float> ends = {-104, -103.9f, -88,        -87.68f,     -87.33654f,
                                          -83,  88,      88.376259f, 88.7228394f, 89};
  return ends;
}
std::vector<float> both_signs(std::vector<float> numbers) {
  for (size_t i = 0, count = numbers.size(); i < count; ++i) numbers.push_back(-numbers[i]);
  return numbers;
}

}  // namespace

const std::vector<Promise>& unary_promises() {
  static const std::vector<Promise> table = {
      {"nn.relu"},
      {"nn.leaky_relu", {{"alpha", 0.1}}},
      {"clip", {{"a_min", -2.0}, {"a_max", 6.0}}, {-2, 6}},
      {"clip", {{"a_min", 0.0}, {"a_max", HUGE_VAL}}},
      {"sigmoid", {}, both_signs(ends_of_exp())},
      {"tanh", {}, both_signs({0.0004f, 0.625f, 7.9f, 9, 9.01f, 20})},
      {"exp", {}, ends_of_exp()},
      {"log", {}, {0.70710678f, 0.9957f, 1.0043f, 1.41421356f}},
      {"sqrt"},
      {"rsqrt"},
      {"erf", {}, both_signs({0.4769f, 0.84375f, 1.25f, 2.857f, 3.92f, 6}), 1e-6, 2 * kCancelled},
      {"abs"},
      {"negative"},
      {"ceil", {}, both_signs({0x1p23f, 0x1p31f, 0x1p63f})},
      {"floor", {}, both_signs({0x1p23f, 0x1p31f, 0x1p63f})},
      {"round", {}, both_signs({0.5f, 1.5f, 2.5f, 0x1p22f, 0x1p23f, 0x1p31f, 0x1p63f})},
      {"trunc", {}, both_signs({0x1p23f, 0x1p31f, 0x1p63f})},
      {"sign"},
      {"sin", {}, both_signs({0.785398f, 1.570796f, 3.141593f, 1e4f}), 1e-6, kCancelled},
      {"cos", {}, both_signs({0.785398f, 1.570796f, 3.141593f, 1e4f}), 1e-6, kCancelled},
      {"tan", {}, both_signs({0.785398f, 3.141593f}), 1e-6, kCancelled},
      {"asin", {}, both_signs({0.5f, 0.999f})},
      {"acos", {}, both_signs({0.5f, 0.999f}), 1e-6, kCancelled},
      {"atan", {}, both_signs({0.4375f, 2.4375f})},
      {"sinh", {}, both_signs({88.7f, 89.4f, 89.5f})},
      {"cosh", {}, both_signs({88.7f, 89.4f, 89.5f})},
      {"asinh", {}, both_signs({0x1p28f})},
      {"acosh", {}, {0x1p28f}},
      {"atanh", {}, both_signs({0.5f, 0.999f})},
      {"reciprocal"},
      {"nn.gelu",
       {{"approximate", std::string("none")}},
       both_signs({5.5437f, 5.92f, 8.5f, 13}),
       1e-6,
       2 * kCancelled},
      {"nn.gelu",
       {{"approximate", std::string("tanh")}},
       both_signs({5, 10, 13.5f, 1e13f}),
       1e-6,
       2 * kCancelled},
      {"nn.silu", {}, both_signs(ends_of_exp()), 1e-6, kSmallProduct},
      {"nn.hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}}, {-2.5f, 2.5f}, 1e-6, kCancelled},
      {"nn.hard_swish", {}, {-3, 3}, 1e-6, 2 * kCancelled},
      {"nn.elu", {{"alpha", 0.7}}, ends_of_exp(), 1e-6, kCancelled},
      {"nn.selu", {}, ends_of_exp(), 1e-6, 2 * kCancelled},
      {"nn.celu", {{"alpha", 1.5}}, ends_of_exp(), 1e-6, kCancelled},
      {"nn.softplus", {}, both_signs(ends_of_exp())},
      {"nn.softsign"},
      {"nn.mish", {}, both_signs(ends_of_exp()), 1e-6, 2 * kCancelled},
      {"nn.thresholded_relu", {{"alpha", 0.5}}, {0.5f}},
      {"nn.shrink", {{"lambd", 0.5}, {"bias", 0.25}}, both_signs({0.5f})},
      {"isnan"},
      {"isinf"},
      {"copy"},
  };
  return table;
}

const std::vector<Promise>& binary_promises() {
  static const std::vector<Promise> table = {
      {"add"},
      {"subtract"},
      {"multiply"},
      {"divide", {}, {}, 1e-6, 0x1p-125, 0x1p-126},  // some multiply by the reciprocal
      // The exponent of two that the logarithm is multiplied to has few bits left of its fraction.
      // A root of -0, whose reciprocal is taken, is -0.
      {"power", {}, {}, 2e-5, 0x1p-125, 0, false},
      {"mod"},
      {"floor_mod"},
      {"maximum"},
      {"minimum"},
      {"equal"},
      {"not_equal"},
      {"less"},
      {"less_equal"},
      {"greater"},
      {"greater_equal"},
      {"nn.prelu", {{"axis", int64_t{0}}}},
  };
  return table;
}

}  // namespace collage
