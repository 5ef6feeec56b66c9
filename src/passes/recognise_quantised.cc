#include "passes/recognise_quantised.h"

#include <algorithm>

#include "ir/visitor.h"
#include "passes/constants.h"
#include "passes/padding.h"
#include "passes/products.h"
#include "passes/quantised.h"
#include "passes/simplify.h"

namespace collage {

namespace {

// nn.conv…d, nn.dense, nn.matmul of dequantised bytes to qnn.conv…d, qnn.dense, qnn.matmul
Result<Expr> quantised_product(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const std::optional<Dequantised> a = dequantised(call.args[0]), b = dequantised(call.args[1]);
  if (!a || !b || !holds_bytes(a->data) || !holds_bytes(b->data) || a->axis) return Expr();
  const bool matmul = call.op->name.ends_with("matmul");
  if (!matmul && b->data->kind() != ExprKind::kConstant) return Expr();
  if (b->axis && *b->axis != channel_axis(call)) return Expr();
  return make_call(matmul ? "qnn.matmul" : "q" + call.op->name,
                   {a->data, b->data, a->scale, a->zero_point, b->scale, b->zero_point}, call.attrs,
                   expr->origin());
}

// qnn.conv…d of integers padded with the zero point to its own padding
Result<Expr> pad_into_convolution(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const CallNode* pad = as_op(call.args[0], "nn.pad");
  if (pad == nullptr) return Expr();
  const std::optional<double> value = scalar_value(pad->args[1]), zero = scalar_value(call.args[3]);
  if (!value || value != zero) return Expr();
  const std::optional<Ints> padding = padding_with(*pad, call);
  if (!padding) return Expr();
  std::vector<Expr> args = call.args;
  args[0] = pad->args[0];
  Attrs attrs = call.attrs;
  attrs.set("padding", *padding);
  return remake(call, std::move(args), std::move(attrs));
}

const std::vector<RewriteRule> kRecogniseQuantisedRules = {
    {"product of integers",
     {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul", "nn.batch_matmul"},
     quantised_product},
    {"padding into the product", {"qnn.conv1d", "qnn.conv2d", "qnn.conv3d"}, pad_into_convolution},
};

bool has_quantised(const Function& function) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
    const auto* call = as<CallNode>(node);
    return call != nullptr && call->op != nullptr && call->op->name.starts_with("qnn.");
  });
}

}  // namespace

Result<Function> recognise_quantised(const Function& function) {
  if (!has_quantised(function)) return apply_rules(function, integer_product_rules());
  std::vector<RewriteRule> rules;
  // Those of products bring what is moved in front of them to attributes.
  for (auto family :
       {moved_dequantize_rules(), product_rules(),
        std::span<const RewriteRule>(kRecogniseQuantisedRules), integer_product_rules()})
    rules.insert(rules.end(), family.begin(), family.end());
  return apply_rules(function, rules);
}

}  // namespace collage
