#include "verify/operator_rounding.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "ir/op.h"
#include "ir/work.h"
#include "ops/recurrent.h"
#include "ops/special_values.h"
#include "ops/type_rules.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

using Names = std::set<std::string_view>;

// Results are operands, or signs of them changed.
const Names kExact = {"nn.relu", "abs", "negative", "maximum", "minimum", "clip",     "where",
                      "copy",    "max", "min",      "topk",    "trilu",   "on_device"};
const Names kSteps = {"floor", "ceil", "round", "trunc", "sign"};
// The second line: where their domain ends.
const Names kJumps = {"mod",       "floor_mod", "nn.thresholded_relu",
                      "nn.shrink", "sqrt",      "rsqrt",
                      "log",       "power",     "asin",
                      "acos",      "acosh",     "atanh"};
// One correctly rounded operation; all other elementwise functions are approximations.
const Names kArithmetic = {"add",      "subtract", "multiply",      "divide",     "sqrt",
                           "nn.prelu", "cast",     "nn.leaky_relu", "nn.bias_add"};
// Functions of all their operands that hold approximations: cells' exponentials, places between
// pixels.
const Names kApproximate = {"nn.rnn", "nn.gru", "nn.lstm", "image.grid_sample",
                            "nn.deformable_conv"};
// What libraries' approximations of functions err by.
constexpr double kApproximation = 8;  // units
constexpr double kLogarithm = 32;     // near 1, where it is small
// Of a recurrent cell's gates, which are subtracted from 1, or made of numbers between -1 and 1;
// the state that they let through is at most about 1.
constexpr double kGate = 2;
// Linear and cubic interpolation: products by weights that are computed in float32 themselves.
constexpr double kInterpolation = 8;

bool is_resize(const CallNode& call) { return call.op->name.starts_with("image.resize"); }

bool moves(const CallNode& call) {
  if (call.op->is_view || kExact.count(call.op->name) != 0 || kSteps.count(call.op->name) != 0)
    return true;
  if (call.op->name.starts_with("nn.max_pool") || call.op->name.starts_with("nn.global_max_pool"))
    return true;
  return call.op->kind == FusionKind::kInjective && !is_resize(call);
}

// Of the error that is promised (ops/special_values.h), which is the largest.
double cancelled(const CallNode& call) {
  constexpr double kOfLargest = 1.0 / 12, kLeast = 1e-9;
  for (const Promise& promise : unary_promises())
    if (promise.op == call.op->name && promise.absolute > kLeast)
      return kOfLargest * promise.absolute;
  return 0;
}

double product(const Shape& shape, size_t begin, size_t end) {
  double result = 1;
  for (size_t i = begin; i < end; ++i) result *= static_cast<double>(shape[i]);
  return result;
}

size_t position_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(normal_axis(axis, static_cast<int64_t>(rank)));
}
size_t axis_of(const CallNode& call, size_t rank) {
  return position_of(call.attrs.integer("axis"), rank);
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-53;
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

double rms_roundoff(double unit) { return 0.41 * unit; }

double summands(const CallNode& call) {
  const std::string& name = call.op->name;
  const std::vector<TensorType> arguments =
      call.args.empty() ? std::vector<TensorType>() : call.args[0]->type().leaves();
  if (arguments.empty()) return 1;
  const Shape& shape = arguments[0].shape;
  const size_t rank = shape.size();
  const double all = product(shape, 0, rank);
  if (name == "nn.softmax" || name == "nn.log_softmax" || name == "cumsum")
    return std::max(1.0, static_cast<double>(shape[axis_of(call, rank)]));
  if (name == "nn.layer_norm" || name == "nn.rms_norm")
    return std::max(1.0, product(shape, axis_of(call, rank), rank));
  if (name == "nn.instance_norm") return std::max(1.0, product(shape, 2, rank));
  if (name == "nn.group_norm")
    return std::max(
        1.0, all / product(shape, 0, 1) / static_cast<double>(call.attrs.integer("num_groups")));
  if (name == "nn.l2_normalize") {
    double together = 1;
    for (const int64_t axis : call.attrs.ints("axis"))
      together *= static_cast<double>(shape[position_of(axis, rank)]);
    return std::max(1.0, together);
  }
  if (call.op->kind < FusionKind::kReduction || !call.op->flops) return 1;
  const double elements = result_elements(call);
  if (elements == 0) return 1;
  const double flops = call_flops(call) / elements;
  return std::max(1.0, multiplies(call) ? flops / 2 : flops);
}

bool multiplies(const CallNode& call) {
  if (call.op->kind != FusionKind::kAnchor || call.args.size() < 2) return false;
  const std::string& name = call.op->name;
  return !name.ends_with("_norm") && !name.ends_with("_normalize");
}

bool reads_all(const CallNode& call) {
  return call.op->kind < FusionKind::kReduction || (multiplies(call) && call.args.size() > 2) ||
         kApproximate.count(call.op->name) != 0;
}

OperatorRounding operator_rounding(const CallNode& call) {
  const std::vector<TensorType> leaves = call.type().leaves();
  const auto real = std::find_if(leaves.begin(), leaves.end(),
                                 [](const TensorType& leaf) { return is_float(leaf.dtype); });
  if (real == leaves.end() || moves(call)) return {};
  // Sums of half-width numbers are made in float32, and rounded once.
  const double stored = rms_roundoff(unit_roundoff(real->dtype));
  const double one = rms_roundoff(
      unit_roundoff(real->dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32));
  const bool logarithm = call.op->name == "log" || call.op->name == "nn.log_softmax";
  const double approximation = logarithm ? kLogarithm : kApproximation;
  if (call.op->kind < FusionKind::kReduction) {
    const double times = kArithmetic.count(call.op->name) != 0 ? 1
                         : is_resize(call)                     ? kInterpolation
                                                               : approximation;
    return {times > 1 ? times * one : 0, std::hypot(times * one, stored), cancelled(call)};
  }
  const double terms = summands(call);
  // Softmax and attention hold exponentials besides.
  const bool approximate = call.op->name.ends_with("softmax") ||
                           call.op->name.ends_with("attention") ||
                           kApproximate.count(call.op->name) != 0;
  const double least = approximate ? approximation : 1;
  return {one * std::max(least, std::sqrt(terms / 2)),
          std::hypot(one * std::max(least, std::sqrt(terms / 3)), stored),
          find_recurrent_op(call.op->name) != nullptr ? kGate * one : 0};
}

double operation_rounding(tensor_program::TermOp op, DType dtype) {
  using tensor_program::TermOp;
  const double one = rms_roundoff(unit_roundoff(dtype));
  switch (op) {
    case TermOp::kAdd:
    case TermOp::kSubtract:
    case TermOp::kMultiply:
    case TermOp::kDivide:
    case TermOp::kQuotient:
    case TermOp::kSqrt:
      return one;
    case TermOp::kExp:
    case TermOp::kExpm1:
    case TermOp::kLog1p:
    case TermOp::kErf:
    case TermOp::kSin:
    case TermOp::kCos:
    case TermOp::kTanh:
    case TermOp::kPower:
      return kApproximation * one;
    case TermOp::kLog:
      return kLogarithm * one;
    default:
      return 0;
  }
}

Continuity continuity(const CallNode& call) {
  if (kSteps.count(call.op->name) != 0) return Continuity::kSteps;
  if (call.op->name == "image.grid_sample" && call.attrs.string("method") == "nearest")
    return Continuity::kJumps;
  if (kJumps.count(call.op->name) != 0 || call.op->name == tensor_program::kCallOp)
    return Continuity::kJumps;
  bool reads_reals = false;
  for (const Expr& arg : call.args)
    for (const TensorType& leaf : arg->type().leaves())
      reads_reals = reads_reals || is_float(leaf.dtype);
  for (const TensorType& leaf : call.type().leaves())
    if (reads_reals && !is_float(leaf.dtype)) return Continuity::kJumps;
  return Continuity::kContinuous;
}

}  // namespace collage
