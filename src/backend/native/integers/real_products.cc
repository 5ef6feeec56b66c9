#include "backend/native/integers/real_products.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "ops/quantised.h"

namespace collage::native {
namespace {

bool is_integer_conv(const CallNode& call) { return call.op->name.starts_with("qnn.conv"); }

const Tensor* constant_of(const Expr& expr) {
  const auto* constant = as<ConstantNode>(expr);
  return constant == nullptr ? nullptr : &constant->value;
}

bool has_constant_weights(const CallNode& call) {
  return constant_of(call.args[1]) != nullptr && constant_of(call.args[4]) != nullptr &&
         constant_of(call.args[5]) != nullptr;
}

/// The dimension of operand 1 that gives the result's channels.
int64_t channels_of(const CallNode& call) {
  const auto rank = static_cast<int64_t>(call.args[1]->tensor_type().shape.size());
  if (!call.attrs.has("transpose_b")) return 0;
  return call.attrs.flag("transpose_b") ? rank - 2 : rank - 1;
}

/// scale * scales.
Tensor scaled(const Tensor& scales, float scale) {
  Tensor result = scales.clone();
  for (int64_t i = 0; i < result.size(); ++i) result.data<float>()[i] *= scale;
  return result;
}

Result<Expr> real_product(const CallNode& call) {
  Expr data_scale = call.args[2], weight_scale = call.args[4];
  const Tensor* scale = constant_of(data_scale);
  const bool ahead = has_constant_weights(call);
  if (ahead && scale != nullptr) {
    weight_scale = make_constant(scaled(*constant_of(weight_scale), scale->data<float>()[0]));
    data_scale = make_scalar(1.0f);
  }
  const Expr data = TRY(make_call("qnn.dequantize", {call.args[0], data_scale, call.args[3]}));
  Expr weights = TRY(make_call("qnn.dequantize", {call.args[1], weight_scale, call.args[5]},
                               {{"axis", channels_of(call)}}));
  if (ahead) {
    const std::vector<Tensor> values = TRY(interpret(make_function({}, weights), {}));
    weights = make_constant(values[0]);
  }
  Attrs attrs;
  for (const auto& [name, value] : call.attrs.entries())
    if (name != kWeightBits) attrs.set(name, value);
  return make_call(call.op->name.substr(1), {data, weights}, attrs, call.origin());
}

}  // namespace

Status check_quantised_product(const CallNode& call) {
  if (is_integer_conv(call) && !has_constant_weights(call))
    return unsupported("native: {} with weights that are not constant", call.op->name);
  return {};
}

Result<Function> with_real_products(const Function& flat) {
  Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || call->op == nullptr || !is_quantised_product(call->op->name))
      return rebuilt;
    return real_product(*call);
  });
  return rewriter.rewrite(flat);
}

bool has_integer_product(const Function& flat) {
  const std::vector<Expr> order = post_order(flat->body);
  return std::any_of(order.begin(), order.end(), [](const Expr& node) {
    const auto* call = as<CallNode>(node);
    if (call == nullptr || call->op == nullptr) return false;
    return is_quantised_product(call->op->name) ||
           (call->op->kind == FusionKind::kAnchor && call->type().is_tensor() &&
            call->tensor_type().dtype == DType::kInt32);
  });
}

Result<Function> flattened(const Function& function) {
  return with_real_products(TRY(inline_calls(function)));
}

}  // namespace collage::native
