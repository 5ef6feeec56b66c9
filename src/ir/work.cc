#include "ir/work.h"

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

double result_elements(const CallNode& call) {
  double elements = 0;
  for (const TensorType& leaf : call.type().leaves())
    elements += static_cast<double>(num_elements(leaf.shape));
  return elements;
}

double call_flops(const CallNode& call) {
  if (!call.op->flops) return result_elements(call);
  std::vector<Type> types;
  for (const Expr& arg : call.args) types.push_back(arg->type());
  return call.op->flops(types, call.attrs, call.type());
}

double call_flops(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  return call == nullptr || call->op == nullptr ? 0 : call_flops(*call);
}

double type_bytes(const Type& type) {
  double bytes = 0;
  for (const TensorType& leaf : type.leaves()) bytes += static_cast<double>(leaf.bytes());
  return bytes;
}

double function_flops(const Function& function) {
  double flops = 0;
  for (const Expr& expr : post_order(function->body)) flops += call_flops(expr);
  return flops;
}

double function_bytes(const Function& function) {
  double bytes = type_bytes(function->result_type());
  for (const Expr& expr : post_order(function->body))
    if (expr->kind() == ExprKind::kVar || expr->kind() == ExprKind::kConstant)
      bytes += type_bytes(expr->type());
  return bytes;
}

double constant_bytes(const Function& function) {
  double bytes = 0;
  for (const Expr& expr : post_order(function->body))
    if (expr->kind() == ExprKind::kConstant) bytes += type_bytes(expr->type());
  return bytes;
}

}  // namespace collage
