#include "passes/widen_halves.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/visitor.h"
#include "ops/control.h"
#include "ops/half.h"
#include "runtime/shared_constants.h"
#include "tensor_program/call.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

DType widened(DType dtype) { return is_half(dtype) ? DType::kFloat32 : dtype; }

Type widened(const Type& type) {
  if (type.is_tensor()) return TensorType{type.tensor().shape, widened(type.tensor().dtype)};
  if (!type.is_tuple()) return type;
  std::vector<Type> fields;
  for (const Type& field : type.fields()) fields.push_back(widened(field));
  return Type::tuple(std::move(fields));
}

// Attributes that name a half-width type, as a type or in words.
Attrs widened(const Attrs& attrs) {
  Attrs result = attrs;
  for (const auto& [name, value] : attrs.entries()) {
    if (const auto* dtype = std::get_if<DType>(&value)) {
      result.set(name, widened(*dtype));
    } else if (const auto* word = std::get_if<std::string>(&value); word && name == "out_dtype") {
      const Result<DType> named = parse_dtype(*word);
      if (named) result.set(name, std::string(dtype_name(widened(*named))));
    }
  }
  return result;
}

Result<Expr> widened_constant(const Expr& expr) {
  const Tensor& value = as<ConstantNode>(expr)->value;
  if (!is_half(value.dtype())) return expr;
  Tensor wide = TRY(Tensor::allocate(DType::kFloat32, value.shape()));
  halves_to_floats(value.data<uint16_t>(), value.dtype(), value.size(), wide.data<float>());
  return make_constant(shared_constant(std::move(wide)), expr->origin());
}

Result<Expr> field_of(const Expr& expr, size_t index) {
  if (const auto* tuple = as<TupleNode>(expr)) return tuple->fields[index];
  return make_tuple_get_item(expr, static_cast<int64_t>(index));
}

// The value as one of that type, which differs in the types of elements alone.
Result<Expr> converted(const Expr& expr, const Type& to) {
  if (expr->type() == to) return expr;
  if (to.is_tensor()) {
    const DType dtype = to.tensor().dtype;
    const CallNode* cast = as_op(expr, "cast");
    // Back from float32, unchanged on the way.
    if (cast != nullptr && is_half(dtype) && cast->args[0]->type() == to) return cast->args[0];
    return make_call("cast", {expr}, {{"dtype", dtype}}, expr->origin());
  }
  std::vector<Expr> fields;
  for (size_t i = 0; i < to.fields().size(); ++i)
    fields.push_back(TRY(converted(TRY(field_of(expr, i)), to.fields()[i])));
  return make_tuple(std::move(fields));
}

// Calls that take and give what they are declared with.
bool has_fixed_types(const CallNode& call) {
  return call.op == nullptr || call.op->name == tensor_program::kCallOp ||
         call.op->name == tensor_program::kExternalOp ||
         call.op->name == tensor_program::kExternalModOp || is_control(call);
}

class Widening {
 public:
  Result<Function> run(const Function& function) {
    for (const Expr& node : post_order(function->body))
      values_.emplace(node.get(), TRY(widened_node(node)));
    Expr body = TRY(converted(value(function->body), function->body->type()));
    return make_function(function->params, std::move(body), function->attrs);
  }

 private:
  const Expr& value(const Expr& original) const { return values_.at(original.get()); }

  Result<Expr> widened_node(const Expr& node) {
    switch (node->kind()) {
      case ExprKind::kVar:
        return converted(node, widened(node->type()));
      case ExprKind::kConstant:
        return widened_constant(node);
      case ExprKind::kCall:
        return widened_call(*as<CallNode>(node), node);
      case ExprKind::kTuple: {
        const std::vector<Expr>& fields = as<TupleNode>(node)->fields;
        std::vector<Expr> wide;
        for (const Expr& field : fields) wide.push_back(value(field));
        if (wide == fields) return node;
        return make_tuple(std::move(wide));
      }
      case ExprKind::kTupleGetItem: {
        const auto* item = as<TupleGetItemNode>(node);
        const Expr& tuple = value(item->tuple);
        if (tuple == item->tuple) return node;
        return field_of(tuple, static_cast<size_t>(item->index));
      }
      case ExprKind::kFunction:
      case ExprKind::kGlobalVar:
        return node;
    }
    return node;
  }

  Result<Expr> widened_call(const CallNode& call, const Expr& node) {
    std::vector<Expr> args;
    for (const Expr& arg : call.args) args.push_back(value(arg));
    if (has_fixed_types(call)) {
      for (size_t i = 0; i < args.size(); ++i)
        args[i] = TRY(converted(args[i], call.args[i]->type()));
      return converted(TRY(called_again(call, node, std::move(args), call.attrs)),
                       widened(node->type()));
    }
    const Attrs attrs = widened(call.attrs);
    if (call.op->name == "cast" && !(args == call.args && attrs == call.attrs) &&
        args[0]->tensor_type().dtype == attrs.dtype("dtype"))
      return args[0];
    return called_again(call, node, std::move(args), attrs);
  }

  static Result<Expr> called_again(const CallNode& call, const Expr& node, std::vector<Expr> args,
                                   const Attrs& attrs) {
    if (args == call.args && attrs == call.attrs) return node;
    if (call.op == nullptr) return make_function_call(call.callee, std::move(args), node->origin());
    return make_call(*call.op, std::move(args), attrs, node->origin());
  }

  std::unordered_map<const ExprNode*, Expr> values_;  // in float32
};

std::optional<DType> coarsest_half(const Function& function) {
  std::optional<DType> coarsest;
  for (const Expr& node : post_order(function->body))
    for (const TensorType& leaf : node->type().leaves())
      if (is_half(leaf.dtype) && coarsest != DType::kBFloat16) coarsest = leaf.dtype;
  return coarsest;
}

}  // namespace

Result<Function> widen_halves(const Function& function) {
  if (!coarsest_half(function)) return function;
  Function wide = TRY(Widening().run(function));
  return structural_equal(wide, function) ? function : wide;
}

std::optional<DType> coarsest_half(const Module& module) {
  std::optional<DType> coarsest;
  for (const auto& [name, function] : module.functions)
    if (const std::optional<DType> half = coarsest_half(function);
        half && coarsest != DType::kBFloat16)
      coarsest = half;
  return coarsest;
}

}  // namespace collage
