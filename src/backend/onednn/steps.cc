#include "backend/onednn/steps.h"

#include <cmath>
#include <string_view>

#include "ir/op.h"

namespace collage::onednn {

namespace {

using Algorithm = dnnl::algorithm;

Step eltwise(Algorithm algorithm, double alpha = 0, double beta = 0) {
  Step step;
  step.algorithm = algorithm;
  step.alpha = static_cast<float>(alpha);
  step.beta = static_cast<float>(beta);
  return step;
}

// One row an operator of one argument. `alpha` and `beta` name attributes, or give numbers. Not
// here: eltwise_log, which errs by 3e-4 of the result near 1 and takes subnormal numbers for the
// least normal one; eltwise_soft_relu, which is 7.6e-6 where the result should be near 0.
struct UnaryRow {
  std::string_view op;
  Algorithm algorithm;
  double alpha = 0, beta = 0;
  std::string_view alpha_attr = {}, beta_attr = {};
};
constexpr UnaryRow kUnary[] = {
    {"nn.relu", Algorithm::eltwise_relu},
    {"nn.leaky_relu", Algorithm::eltwise_relu, 0, 0, "alpha"},
    {"clip", Algorithm::eltwise_clip_v2, 0, 0, "a_min", "a_max"},
    {"sigmoid", Algorithm::eltwise_logistic},
    {"tanh", Algorithm::eltwise_tanh},
    {"exp", Algorithm::eltwise_exp},
    {"sqrt", Algorithm::eltwise_sqrt},
    {"abs", Algorithm::eltwise_abs},
    {"negative", Algorithm::eltwise_linear, -1, 0},
    {"reciprocal", Algorithm::eltwise_pow, 1, -1},
    {"round", Algorithm::eltwise_round},
    {"nn.elu", Algorithm::eltwise_elu, 0, 0, "alpha"},
    {"nn.silu", Algorithm::eltwise_swish, 1},
    {"nn.mish", Algorithm::eltwise_mish},
    {"nn.hard_swish", Algorithm::eltwise_hardswish, 1. / 6, 0.5},
    {"nn.hard_sigmoid", Algorithm::eltwise_hardsigmoid, 0, 0, "alpha", "beta"},
};

// An operator of two arguments: what it is with a tensor, in either order, and with a number on
// either side (`x op c`, `c op x`).
struct BinaryRow {
  std::string_view op;
  Algorithm algorithm;
  bool commutes;
};
constexpr BinaryRow kBinary[] = {
    {"add", Algorithm::binary_add, true},      {"subtract", Algorithm::binary_sub, false},
    {"multiply", Algorithm::binary_mul, true}, {"divide", Algorithm::binary_div, false},
    {"maximum", Algorithm::binary_max, true},  {"minimum", Algorithm::binary_min, true},
    {"power", Algorithm::undef, false},        {"nn.bias_add", Algorithm::binary_add, false},
};

template <typename Row, size_t N>
const Row* find(const Row (&table)[N], std::string_view op) {
  for (const Row& row : table)
    if (row.op == op) return &row;
  return nullptr;
}

Result<Step> with_scalar(std::string_view op, size_t position, float c) {
  constexpr auto kLinear = Algorithm::eltwise_linear;
  constexpr auto kClip = Algorithm::eltwise_clip_v2;
  constexpr auto kPow = Algorithm::eltwise_pow;
  bool running_first = position == 0;
  if (op == "add") return eltwise(kLinear, 1, c);
  if (op == "multiply") return eltwise(kLinear, c, 0);
  if (op == "subtract") return running_first ? eltwise(kLinear, 1, -c) : eltwise(kLinear, -1, c);
  // Not `minimum` by a clip from -infinity, to which it takes NaN.
  if (op == "maximum") return eltwise(kClip, c, INFINITY);
  // A division by a power of two is exactly a product; others stay divisions.
  int exponent = 0;
  if (op == "divide" && running_first && std::frexp(std::abs(c), &exponent) == 0.5f)
    return eltwise(kLinear, 1 / c, 0);
  if (op == "divide" && !running_first) return eltwise(kPow, c, -1);
  if (op == "power" && running_first) {
    if (c == 2) return eltwise(Algorithm::eltwise_square);
    if (c == -1) return eltwise(kPow, 1, -1);
  }
  return unsupported("onednn: {} with the number {}", op, c);
}

// numpy's alignment: from the right. bias_add names the axis instead.
Shape aligned(const CallNode& call, const Shape& shape) {
  size_t rank = call.tensor_type().shape.size();
  if (call.op->name == "nn.bias_add") {
    int64_t axis = call.attrs.integer("axis");
    Shape wide(rank, 1);
    wide[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = shape[0];
    return wide;
  }
  Shape wide(rank - shape.size(), 1);
  wide.insert(wide.end(), shape.begin(), shape.end());
  return wide;
}

Step binary(Algorithm algorithm, const CallNode& call, const Operand& operand) {
  Step step;
  step.kind = Step::Kind::kBinary;
  step.algorithm = algorithm;
  step.operand = operand;
  step.operand.shape = aligned(call, operand.shape);
  return step;
}

}  // namespace

bool is_step_operator(std::string_view op) {
  return find(kUnary, op) != nullptr || find(kBinary, op) != nullptr || op == "nn.gelu";
}

std::vector<std::string> step_operators() {
  std::vector<std::string> names = {"nn.gelu"};
  for (const UnaryRow& row : kUnary) names.emplace_back(row.op);
  for (const BinaryRow& row : kBinary) names.emplace_back(row.op);
  return names;
}

Result<Step> make_step(const CallNode& call, size_t position, const Operand* other) {
  std::string_view op = call.op->name;
  if (op == "clip" && std::isinf(call.attrs.real("a_min")))
    return unsupported("onednn: a clip from {}, to which it takes NaN", call.attrs.real("a_min"));
  if (const UnaryRow* row = find(kUnary, op)) {
    return eltwise(row->algorithm,
                   row->alpha_attr.empty() ? row->alpha : call.attrs.real(row->alpha_attr),
                   row->beta_attr.empty() ? row->beta : call.attrs.real(row->beta_attr));
  }
  if (op == "nn.gelu") {
    // eltwise_gelu_erf is wrong by 4e-4 near -5 in oneDNN 3.1.
    if (call.attrs.string("approximate") != "tanh")
      return unsupported("onednn: gelu by erf is not accurate enough");
    return eltwise(Algorithm::eltwise_gelu_tanh);
  }
  const BinaryRow* row = find(kBinary, op);
  if (row == nullptr) return unsupported("onednn: no elementwise step for {}", op);
  if (other == nullptr) {  // x op x
    if (op == "multiply") return eltwise(Algorithm::eltwise_square);
    if (op == "add") return eltwise(Algorithm::eltwise_linear, 2, 0);
    return unsupported("onednn: {} of a tensor and itself", op);
  }
  if (auto c = other->scalar(); c && op != "nn.bias_add") {
    Result<Step> step = with_scalar(op, position, *c);
    if (step.ok() || row->algorithm == Algorithm::undef) return step;
  }
  if (row->algorithm == Algorithm::undef || (position == 1 && !row->commutes))
    return unsupported("onednn: {} with the running value on the right", op);
  return binary(row->algorithm, call, *other);
}

Result<std::vector<Step>> make_dequantised_steps(const CallNode& call, const Operand& integers,
                                                 const Quantisation& quantisation) {
  if (call.op->name != "add") return unsupported("onednn: {} of quantised numbers", call.op->name);
  return std::vector<Step>{
      eltwise(Algorithm::eltwise_linear, 1 / quantisation.scale, -quantisation.zero_point),
      binary(Algorithm::binary_add, call, integers),
      eltwise(Algorithm::eltwise_linear, quantisation.scale, 0)};
}

std::vector<Step> make_rounding_steps(Type bytes, const Quantisation& from,
                                      const Quantisation& to) {
  const int low = bytes == kSignedByte ? -128 : 0;
  return {eltwise(Algorithm::eltwise_linear, 1 / from.scale, from.zero_point),
          eltwise(Algorithm::eltwise_round), eltwise(Algorithm::eltwise_clip_v2, low, low + 255),
          eltwise(Algorithm::eltwise_linear, to.scale, -to.scale * to.zero_point)};
}

}  // namespace collage::onednn
