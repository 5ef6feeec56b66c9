#include "passes/simplify_quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/quantised.h"
#include "passes/constants.h"
#include "passes/quantised.h"
#include "passes/rewrite_rules.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

// quantize(dequantize(q)) by the same parameters to q
Result<Expr> drop_round_trip(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const std::optional<Dequantised> source = dequantised(call.args[0]);
  if (!source || !(source->data->type() == expr->type())) return Expr();
  // Differences of larger integers may be no float32.
  if (dtype_size(expr->tensor_type().dtype) > 2 || !is_positive(source->scale) ||
      !same_value(source->scale, call.args[1]) || !same_value(source->zero_point, call.args[2]))
    return Expr();
  const auto rank = static_cast<int64_t>(expr->tensor_type().shape.size());
  if (source->axis && *source->axis != from_start(call.attrs.integer("axis"), rank)) return Expr();
  // With larger scales what the largest integers stand for may be infinite.
  for (int64_t i = 0; i < as<ConstantNode>(source->scale)->value.size(); ++i)
    if (as<ConstantNode>(source->scale)->value.element_as_double(i) > 1e30) return Expr();
  return source->data;
}

struct Range {
  double low, high;
};

Range range_of(DType dtype) {
  return dispatch_integer(dtype, []<typename T>(Tag<T>) {
    return Range{static_cast<double>(std::numeric_limits<T>::min()),
                 static_cast<double>(std::numeric_limits<T>::max())};
  });
}

// Whether all numbers up to `low` become the least integer and all from `high` on the largest.
bool saturates(const CallNode& quantize, double low, double high) {
  const auto* scale = as<ConstantNode>(quantize.args[1]);
  const auto* zero = as<ConstantNode>(quantize.args[2]);
  if (scale == nullptr || zero == nullptr || !is_positive(quantize.args[1])) return false;
  const Range range = range_of(quantize.tensor_type().dtype);
  for (int64_t i = 0; i < scale->value.size(); ++i) {
    const auto step = static_cast<float>(scale->value.element_as_double(i));
    const double middle = zero->value.element_as_double(i);
    const auto integer = [&](double x) {
      return std::nearbyint(static_cast<double>(static_cast<float>(x) / step)) + middle;
    };
    if (integer(low) > range.low || integer(high) < range.high) return false;
  }
  return true;
}

// quantize(relu(x)), quantize(clip(x)) to quantize(x), where the bounds are those of the type
Result<Expr> drop_saturation(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const Expr& data = call.args[0];
  if (!uses.once(data)) return Expr();
  double low = 0, high = std::numeric_limits<double>::infinity();
  const CallNode* activation = as_op(data, "nn.relu");
  if (activation == nullptr) {
    activation = as_op(data, "clip");
    if (activation == nullptr) return Expr();
    low = activation->attrs.real("a_min");
    high = activation->attrs.real("a_max");
  }
  if (low > high || !saturates(call, low, high)) return Expr();
  return remake(call, {activation->args[0], call.args[1], call.args[2]});
}

// quantize(f(x)) to f(quantize(x)), where f only moves elements: these are integers then, and what
// computes x can give them. A transpose that something else reads would be computed twice.
Result<Expr> quantise_first(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const CallNode* transpose = as_op(call.args[0], "transpose");
  const CallNode* moved = transpose != nullptr ? transpose : as_op(call.args[0], "reshape");
  if (moved == nullptr || moved->args[0]->tensor_type().shape.empty() ||
      !call.args[1]->tensor_type().shape.empty() ||
      (transpose != nullptr && !uses.once(call.args[0])))
    return Expr();
  Attrs attrs = call.attrs;
  attrs.set("axis", int64_t{-1});
  const Expr integers =
      TRY(remake(call, {moved->args[0], call.args[1], call.args[2]}, std::move(attrs)));
  return remake(*moved, {integers});
}

bool are_of_7_bits(const Tensor& weights) {
  if (weights.dtype() != DType::kInt8) return false;
  const std::span<const int8_t> values = weights.values<int8_t>();
  return std::all_of(values.begin(), values.end(), [](int8_t value) {
    return value >= -kLargestOf7Bits && value <= kLargestOf7Bits;
  });
}

// The attribute of products with constant weights says what is true of them.
Result<Expr> tell_weight_bits(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const auto* weights = as<ConstantNode>(call.args[1]);
  if (weights == nullptr) return Expr();
  const bool narrow = are_of_7_bits(weights->value);
  if (narrow == has_weights_of_7_bits(call.attrs)) return Expr();
  Attrs attrs = call.attrs;
  attrs.set(kWeightBits, int64_t{narrow ? 7 : 8});
  return remake(call, call.args, std::move(attrs));
}

const std::vector<RewriteRule> kSimplifyQuantisedRules = {
    {"bits of weights",
     {"qnn.conv1d", "qnn.conv2d", "qnn.conv3d", "qnn.dense", "qnn.matmul"},
     tell_weight_bits},
    {"drop a round trip", {"qnn.quantize"}, drop_round_trip},
    {"drop what saturates anyhow", {"qnn.quantize"}, drop_saturation},
    {"quantise before elements are moved", {"qnn.quantize"}, quantise_first},
};

}  // namespace

Result<Function> simplify_quantised(const Function& function) {
  std::vector<RewriteRule> rules;
  for (auto family :
       {moved_dequantize_rules(), std::span<const RewriteRule>(kSimplifyQuantisedRules)})
    rules.insert(rules.end(), family.begin(), family.end());
  return apply_rules(function, rules);
}

}  // namespace collage
