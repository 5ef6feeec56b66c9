#include "verify/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/quantised.h"
#include "ops/random_inputs.h"

namespace collage {

namespace {

// splitmix64: fast, seedable per tensor, at any position.
struct Random {
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += kStep);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
  }
};

void fill_float(Tensor& tensor, float low, float high, uint64_t seed) {
  const uint64_t state = seed * 0x2545f4914f6cdd1du + 1;
  float* data = tensor.data<float>();
  const int64_t count = tensor.size();
#pragma omp parallel for if (count > 8192)
  for (int64_t i = 0; i < count; ++i)
    data[i] = Random{state + static_cast<uint64_t>(i) * Random::kStep}.uniform(low, high);
}

void store_integer(Tensor& tensor, int64_t i, int64_t value) {
  switch (dtype_size(tensor.dtype())) {
    case 1:
      tensor.data<int8_t>()[i] = static_cast<int8_t>(value);
      break;
    case 2:
      tensor.data<int16_t>()[i] = static_cast<int16_t>(value);
      break;
    case 4:
      tensor.data<int32_t>()[i] = static_cast<int32_t>(value);
      break;
    default:
      tensor.data<int64_t>()[i] = value;
  }
}

// Lowest value and number of values of an integer parameter. Where no use says more: 0 or 1; of
// what is quantised any.
struct IntegerRange {
  int64_t low = 0, count = 2;
};
IntegerRange free_range(DType dtype) {
  if (dtype == DType::kInt8) return {-128, 256};
  if (dtype == DType::kUInt8) return {0, 256};
  return {};
}
IntegerRange integer_range(DType dtype, const ValueRange& uses, const ValueRange& unused) {
  if (uses.low == unused.low && uses.high == unused.high) return free_range(dtype);
  auto low = static_cast<int64_t>(uses.low), high = static_cast<int64_t>(uses.high);
  // A divisor, exponent or the like: its lower end is what matters.
  if (low > 0 && uses.high == unused.high) return {low, 2};
  return {low, std::max<int64_t>(1, high - low + 1)};
}

Result<Tensor> integers(const TensorType& type, IntegerRange range, uint64_t seed) {
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  Random random{seed};
  if (type.dtype == DType::kBool) range = {};
  if (type.dtype == DType::kInt8) range.count = std::min<int64_t>(range.count, 128 - range.low);
  if (type.dtype == DType::kUInt8) range.count = std::min<int64_t>(range.count, 256 - range.low);
  for (int64_t i = 0, n = tensor.size(); i < n; ++i)
    store_integer(
        tensor, i,
        range.low + static_cast<int64_t>(random.next() % static_cast<uint64_t>(range.count)));
  return tensor;
}

// Weights of 7 bits: a sum of four uniform numbers, so that most are small, as trained ones are.
// How long their product takes depends on it (native's quad_pairs.h).
constexpr int64_t kSpreadOf7Bits = kLargestOf7Bits / 4;
Result<Tensor> weights_of_7_bits(const TensorType& type, uint64_t seed) {
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  Random random{seed};
  for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
    int64_t weight = 0;
    for (int draw = 0; draw < 4; ++draw)
      weight += static_cast<int64_t>(random.next() % (2 * kSpreadOf7Bits + 1)) - kSpreadOf7Bits;
    store_integer(tensor, i, weight);
  }
  return tensor;
}

// Half-precision types hold random bit patterns of normal numbers around 1.
Result<Tensor> small_floats(const TensorType& type, float low, float high, uint64_t seed) {
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  if (type.dtype == DType::kFloat32) {
    fill_float(tensor, low, high, seed);
    return tensor;
  }
  Random random{seed};
  for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
    float value = random.uniform(low, high);
    if (type.dtype == DType::kFloat64) {
      tensor.data<double>()[i] = value;
    } else if (type.dtype == DType::kFloat16) {
      reinterpret_cast<_Float16*>(tensor.raw())[i] = static_cast<_Float16>(value);
    } else {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      tensor.data<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  return tensor;
}

bool lies_within(const Tensor& integers, const ValueRange& range) {
  for (int64_t i = 0; i < integers.size(); ++i) {
    const double value = integers.element_as_double(i);
    if (value < range.low || value > range.high) return false;
  }
  return true;
}

}  // namespace

Result<Tensor> synthetic_constant(const TensorType& type, uint64_t seed) {
  if (!is_float(type.dtype)) return integers(type, free_range(type.dtype), seed);
  // Vectors are scales, variances and biases: positive. Matrices and filters are zero-mean with
  // variance about 2 / fan-in.
  if (type.shape.size() < 2) return small_floats(type, 0.1f, 1.0f, seed);
  double elements = static_cast<double>(std::max<int64_t>(1, num_elements(type.shape)));
  double fan_in = type.shape.size() == 2
                      ? std::sqrt(elements)
                      : elements / static_cast<double>(std::max<int64_t>(1, type.shape[0]));
  auto bound = static_cast<float>(std::sqrt(6.0 / std::max(1.0, fan_in)));
  return small_floats(type, -bound, bound, seed);
}

Result<Function> with_usable_integers(const Function& function) {
  uint64_t seed = 0;
  Rewriter rewriter([&](const Expr& expr, const Expr& rebuilt) -> Result<Expr> {
    const auto* constant = as<ConstantNode>(expr);
    if (constant == nullptr || !is_integer(constant->value.dtype())) return rebuilt;
    const std::optional<ValueRange> range = demanded_range(expr, function->body);
    if (!range || lies_within(constant->value, *range)) return rebuilt;
    const auto low = static_cast<int64_t>(range->low), high = static_cast<int64_t>(range->high);
    return make_constant(TRY(integers(expr->tensor_type(), {low, high - low + 1}, ++seed)));
  });
  return rewriter.rewrite(function);
}

Result<Function> with_quantised_weights(const Function& function) {
  uint64_t seed = 0;
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || call->op == nullptr || !is_quantised_product(call->op->name))
      return rebuilt;
    std::vector<Expr> args = call->args;
    const bool narrow = has_weights_of_7_bits(call->attrs);
    const TensorType& weights = args[1]->tensor_type();
    if (narrow && args[1]->kind() == ExprKind::kConstant)
      args[1] = make_constant(TRY(weights_of_7_bits(weights, ++seed)));
    const auto* scale = as<ConstantNode>(args[4]);
    if (scale != nullptr && scale->value.size() > 1) {
      // Sums over so many products of integers of any value are some 7400 times the root of that,
      // a quarter of it with those of 7 bits; these scales make them some 40 steps of the data's.
      const auto elements = static_cast<double>(num_elements(weights.shape));
      const double depth = std::max(1.0, elements / static_cast<double>(scale->value.size()));
      const auto middle = static_cast<float>(40 / ((narrow ? 1850 : 7400) * std::sqrt(depth)));
      args[4] = make_constant(
          TRY(small_floats(scale->tensor_type(), 0.5f * middle, 1.5f * middle, ++seed)));
    }
    return make_call(*call->op, std::move(args), call->attrs, call->origin());
  });
  return rewriter.rewrite(function);
}

Result<std::vector<Tensor>> synthetic_inputs(const Function& function, uint64_t seed,
                                             const SyntheticRange& range) {
  Function flat = TRY(inline_calls(function));
  // What a parameter without uses gets: no use restricted those that get the same.
  Expr unused = make_var("unused", TensorType{{}, DType::kInt64});
  ValueRange free = input_ranges(make_function({unused}, unused)).at(0);
  std::vector<ValueRange> ranges = input_ranges(flat);
  std::vector<Tensor> inputs;
  for (const Expr& param : flat->params) {
    const TensorType& type = param->tensor_type();
    uint64_t own_seed = seed * 1000003 + inputs.size() + 1;
    const ValueRange& uses = ranges[inputs.size()];
    // Scales of quantised tensors have a range of their own.
    const bool any_real = uses.low == ValueRange{}.low && uses.high == ValueRange{}.high;
    const SyntheticRange reals =
        any_real ? range
                 : SyntheticRange{static_cast<float>(uses.low), static_cast<float>(uses.high)};
    inputs.push_back(is_float(type.dtype)
                         ? TRY(small_floats(type, reals.low, reals.high, own_seed))
                         : TRY(integers(type, integer_range(type.dtype, uses, free), own_seed)));
  }
  return inputs;
}

namespace {

using Names = std::set<std::string_view>;

bool calls_any(const Function& function, const Names& names) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(), [&](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr && names.count(call->op->name) != 0;
  });
}

std::vector<float> numbers_at(Ends ends, bool denormals) {
  using Limits = std::numeric_limits<float>;
  constexpr float kFar = 1e5f;
  std::vector<float> numbers = {kFar, -0.0f};
  if (denormals) numbers.insert(numbers.end(), {3 * Limits::denorm_min(), -Limits::min() / 3});
  if (ends != Ends::kOutlier)
    numbers.insert(numbers.end(), {Limits::infinity(), -Limits::infinity()});
  if (ends == Ends::kNotFinite || ends == Ends::kAll) numbers.push_back(Limits::quiet_NaN());
  if (ends == Ends::kAll || ends == Ends::kNumbers)
    numbers.insert(numbers.end(), {Limits::max(), -Limits::max()});
  return numbers;
}

}  // namespace

Result<std::vector<Tensor>> with_ends(const Function& function, std::vector<Tensor> inputs,
                                      Ends ends, uint64_t seed) {
  // A divisor that small may be taken for zero (ops/special_values.h).
  static const Names kDivide = {"divide",     "power", "mod", "floor_mod",
                                "reciprocal", "rsqrt", "log"};
  const Function flat = TRY(inline_calls(function));
  const std::vector<ValueRange> ranges = input_ranges(flat);
  const std::vector<float> numbers = numbers_at(ends, !calls_any(flat, kDivide));
  Random random{seed};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool any = ranges[i].low == ValueRange{}.low && ranges[i].high == ValueRange{}.high;
    if (inputs[i].dtype() != DType::kFloat32 || inputs[i].size() == 0 || !any) continue;
    inputs[i] = inputs[i].clone();
    // No more than half of a small tensor, each in a place of its own.
    const auto size = static_cast<uint64_t>(inputs[i].size());
    const uint64_t count = std::min<uint64_t>(numbers.size(), std::max<uint64_t>(1, size / 2));
    const uint64_t first = random.next(), from = random.next();
    for (uint64_t k = 0; k < count; ++k)
      inputs[i].data<float>()[(first % size + k * (size / count)) % size] =
          numbers[(from + k) % numbers.size()];
  }
  return inputs;
}

Ends ends_to_check(const Function& function) {
  // An infinity times a weight of zero, and where NaN stands in an order, is nowhere defined.
  static const Names kUndefined = {
      "image.resize1d",     "image.resize2d", "image.resize3d", "image.grid_sample",
      "nn.deformable_conv", "topk",           "argsort",        "sort"};
  if (calls_any(function, kUndefined)) return Ends::kOutlier;
  const std::vector<Expr> nodes = post_order(function->body);
  const bool adds_up = std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr && call->op->kind >= FusionKind::kReduction;
  });
  return adds_up ? Ends::kNotFinite : Ends::kAll;
}

}  // namespace collage
