#include "ir/work.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

double result_elements(const CallNode& call) {
  double elements = 0;
  for (const TensorType& leaf : call.type().leaves())
    elements += static_cast<double>(num_elements(leaf.shape));
  return elements;
}

namespace {

// The iterations of a loop (ops/control.h), where it is known how many.
double repeats(const CallNode& call) {
  constexpr double kUnknown = 64, kMost = 1e9;
  if (call.op->name != "control.loop") return 1;
  const auto* trips = as<ConstantNode>(call.args[0]);
  const auto most =
      trips != nullptr ? static_cast<double>(trips->value.element_as_int64(0)) : kUnknown;
  const int64_t rows = call.attrs.integer("rows");
  const double bound = rows >= 0 ? static_cast<double>(rows) : kMost;
  return std::max(0.0, std::min(most < kMost ? most : kUnknown, bound));
}

}  // namespace

double call_flops(const CallNode& call) {
  // Of control flow, what its functions compute: of branches both.
  double inside = 0;
  for (const Expr& arg : call.args)
    if (arg->kind() == ExprKind::kFunction)
      inside += function_flops(std::static_pointer_cast<const FunctionNode>(arg));
  if (inside > 0) return repeats(call) * inside;
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
