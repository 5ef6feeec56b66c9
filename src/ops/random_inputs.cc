#include "ops/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/control.h"
#include "ops/counter_random.h"
#include "ops/half.h"
#include "ops/recurrent.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

// The extent that argument `arg` of the call indexes, or 0 when it holds no indices.
int64_t indexed_extent(const CallNode& call, size_t arg) {
  const std::string& op = call.op->name;
  if (!call.args[0]->type().is_tensor()) return 0;
  const Shape& data = call.args[0]->tensor_type().shape;
  auto axis = [&] {
    int64_t a = call.attrs.integer("axis");
    return static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(data.size()) : a);
  };
  if (op == "one_hot" && arg == 0) return call.attrs.integer("depth");
  if (op == "vision.roi_align" && arg == 2) return data[0];
  if (arg != 1) return 0;
  if (op == "take" || op == "gather" || op == "scatter_elements") return data[axis()];
  if (op == "gather_nd" || op == "scatter_nd") {
    const auto first =
        static_cast<size_t>(op == "gather_nd" ? call.attrs.integer("batch_dims") : 0);
    const auto depth = static_cast<size_t>(call.args[1]->tensor_type().shape.back());
    int64_t least = data[first];
    for (size_t d = first; d < first + depth; ++d) least = std::min(least, data[d]);
    return least;
  }
  return 0;
}

bool must_be_positive(const CallNode& call, size_t arg) {
  const std::string& op = call.op->name;
  return arg == 1 && (op == "divide" || op == "mod" || op == "floor_mod" || op == "power" ||
                      op == "reverse_sequence");
}

// What the call takes as argument `arg` where that is part of a quantised number: integers of any
// value, zero points near the middle of the integers that they belong to, scales.
std::optional<ValueRange> quantised_range(const CallNode& call, size_t arg) {
  const std::string& op = call.op->name;
  if (!op.starts_with("qnn.")) return std::nullopt;
  const bool one_operand = op.ends_with("quantize");
  const size_t operands = one_operand ? 1 : 2;
  const bool parameter = arg >= operands;
  if (parameter && (arg - operands) % 2 == 0) return ValueRange{0.01, 0.1};
  const size_t operand = parameter ? (arg - operands) / 2 : arg;
  const DType dtype =
      op == "qnn.quantize" ? call.tensor_type().dtype : call.args[operand]->tensor_type().dtype;
  switch (dtype) {
    case DType::kInt8:
      return parameter ? ValueRange{-16, 15} : ValueRange{-128, 127};
    case DType::kUInt8:
      return parameter ? ValueRange{112, 143} : ValueRange{0, 255};
    case DType::kInt16:
      return parameter ? ValueRange{-256, 255} : ValueRange{-0x8000, 0x7fff};
    case DType::kUInt16:
      return parameter ? ValueRange{0x7f00, 0x80ff} : ValueRange{0, 0xffff};
    default:
      return parameter ? ValueRange{0, 0} : ValueRange{-1000, 1000};
  }
}

struct Bounds {
  int64_t high = 7;
  int64_t low = 0;
  bool indices = false;
  std::optional<ValueRange> quantised;  // where nothing else is said
};

// `added`: the most that constants added to the value before it became this argument.
void tighten(Bounds& bounds, const CallNode& call, size_t arg, int64_t added) {
  if (int64_t extent = indexed_extent(call, arg); extent > 0) {
    const int64_t last = std::max<int64_t>(extent - 1 - added, 0);
    bounds.high = bounds.indices ? std::min(bounds.high, last) : last;
    bounds.indices = true;
  }
  if (must_be_positive(call, arg)) bounds.low = 1;
  if (!bounds.quantised) bounds.quantised = quantised_range(call, arg);
  if (find_recurrent_op(call.op->name) != nullptr && arg == 4) {
    bounds.high = call.args[0]->tensor_type().shape[0];
    bounds.indices = true;
  }
  if (call.op->name == "match_size" && arg == 1) {
    bounds.low = bounds.high = call.attrs.integer("size");
    bounds.indices = true;
  }
  if (call.op->name == "reverse_sequence" && arg == 1) {
    const Shape& data = call.args[0]->tensor_type().shape;
    int64_t axis = call.attrs.integer("seq_axis");
    bounds.high =
        data[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(data.size()) : axis)];
    bounds.indices = true;
  }
}

bool all_integer(const Type& type) {
  for (const TensorType& leaf : type.leaves())
    if (!is_integer(leaf.dtype)) return false;
  return true;
}

// The largest element of a constant that the call adds to its argument.
int64_t largest_added(const CallNode& call, size_t arg) {
  if (call.op->name != "add") return 0;
  const auto* constant = as<ConstantNode>(call.args[1 - arg]);
  constexpr int64_t kMost = int64_t{1} << 40;  // of one call: many add up to no overflow
  int64_t largest = 0;
  for (int64_t i = 0; constant != nullptr && i < constant->value.size(); ++i)
    largest = std::max(largest, std::min(kMost, constant->value.element_as_int64(i)));
  return largest;
}

Bounds bounds_of(const Expr& param, const std::vector<Expr>& order);

// What the functions of control flow demand of what they get as argument `arg`.
void tighten_inside(Bounds& bounds, const CallNode& call, size_t arg, int64_t added) {
  for (const Expr& argument : call.args) {
    const auto* function = as<FunctionNode>(argument);
    if (function == nullptr) continue;
    if (arg < kFirstOperand) continue;
    const size_t counter = call.op->name == kLoopOp ? 1 : 0;  // that the body takes before
    const Expr& param = function->params[arg - kFirstOperand + counter];
    const Bounds inside = bounds_of(param, post_order(function->body));
    bounds.low = std::max(bounds.low, inside.low);
    if (!inside.indices) continue;
    const int64_t last = std::max<int64_t>(inside.high - added, 0);
    bounds.high = bounds.indices ? std::min(bounds.high, last) : last;
    bounds.indices = true;
  }
}

// What the uses of `param`, direct or through other integers, demand of its values.
Bounds bounds_of(const Expr& param, const std::vector<Expr>& order) {
  Bounds bounds;
  // What is made of the parameter as integers, with the most that constants added on the way.
  std::unordered_map<const ExprNode*, int64_t> carries{{param.get(), 0}};
  for (const Expr& expr : order) {
    if (expr == param) continue;
    std::vector<Expr> inputs = expr_inputs(expr);
    const auto* call = as<CallNode>(expr);
    bool any = false;
    int64_t added = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto it = carries.find(inputs[i].get());
      if (it == carries.end()) continue;
      any = true;
      added = std::max(added, it->second);
      if (call == nullptr || call->op == nullptr) continue;
      if (is_control(*call)) {
        tighten_inside(bounds, *call, i, it->second);
        continue;
      }
      tighten(bounds, *call, i, it->second);
      if (all_integer(expr->type())) added = std::max(added, it->second + largest_added(*call, i));
    }
    if (any && !expr->type().is_function() && all_integer(expr->type()))
      carries.emplace(expr.get(), added);
  }
  return bounds;
}

// That of a parameter that is used as a scale.
std::optional<ValueRange> scale_range(const Expr& param, const std::vector<Expr>& order) {
  if (!param->type().is_tensor() || !is_float(param->tensor_type().dtype)) return std::nullopt;
  for (const Expr& expr : order) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) continue;
    for (size_t i = 1; i < call->args.size(); ++i)
      if (call->args[i] == param)
        if (auto range = quantised_range(*call, i)) return range;
  }
  return std::nullopt;
}

}  // namespace

Tensor random_tensor(const TensorType& type, uint64_t seed, ValueRange range) {
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  const int64_t n = tensor.size();
  const RandomStream stream(seed);
  auto bits = [stream](int64_t i) { return stream.bits(static_cast<uint64_t>(i)); };
  auto real = [&](int64_t i) {
    return range.low + (range.high - range.low) * static_cast<double>(bits(i) >> 11) * 0x1p-53;
  };
  if (is_half(type.dtype)) {
    for (int64_t i = 0; i < n; ++i)
      tensor.data<uint16_t>()[i] = float_to_half(static_cast<float>(real(i)), type.dtype);
    return tensor;
  }
  const double low = std::ceil(range.low);
  const auto count = static_cast<uint64_t>(std::max(0.0, std::floor(range.high) - low) + 1);
  dispatch_any(type.dtype, [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static) if (n > 65536)
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        tensor.data<T>()[i] = static_cast<T>(real(i));
      } else if (type.dtype == DType::kBool) {
        tensor.data<T>()[i] = static_cast<T>(bits(i) >> 63);
      } else {
        tensor.data<T>()[i] = static_cast<T>(static_cast<int64_t>(low) +
                                             static_cast<int64_t>((bits(i) >> 16) % count));
      }
    }
  });
  return tensor;
}

std::vector<ValueRange> input_ranges(const Function& function) {
  Result<Function> flat = inline_calls(function);
  const std::vector<Expr> order = post_order(flat ? (*flat)->body : function->body);
  std::vector<ValueRange> ranges;
  for (const Expr& param : function->params) {
    Bounds bounds = bounds_of(param, order);
    bounds.high = std::max(bounds.high, bounds.low);
    ValueRange integers{static_cast<double>(bounds.low), static_cast<double>(bounds.high)};
    if (bounds.quantised && !bounds.indices && bounds.low == 0) integers = *bounds.quantised;
    const ValueRange reals = scale_range(param, order).value_or(ValueRange{});
    for (const TensorType& leaf : param->type().leaves())
      ranges.push_back(is_integer(leaf.dtype) ? integers : reals);
  }
  return ranges;
}

std::optional<ValueRange> demanded_range(const Expr& integers, const Expr& body) {
  const Bounds bounds = bounds_of(integers, post_order(body));
  if (!bounds.indices && bounds.low == 0) return std::nullopt;
  return ValueRange{static_cast<double>(bounds.low),
                    static_cast<double>(std::max(bounds.low, bounds.high))};
}

std::vector<Tensor> random_inputs(const Function& function, uint64_t seed) {
  const std::vector<ValueRange> ranges = input_ranges(function);
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    for (const TensorType& leaf : param->type().leaves())
      inputs.push_back(random_tensor(leaf, mix_bits(seed) + inputs.size(), ranges[inputs.size()]));
  return inputs;
}

}  // namespace collage
