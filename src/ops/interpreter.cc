#include "ops/interpreter.h"

#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/control.h"

namespace collage {

namespace {

using Values = std::vector<Tensor>;

Status check_inputs(const std::vector<TensorType>& leaves, std::span<const Tensor> inputs) {
  if (leaves.size() != inputs.size())
    return bad_model("takes {} input tensors, not {}", leaves.size(), inputs.size());
  for (size_t i = 0; i < leaves.size(); ++i)
    if (inputs[i].shape() != leaves[i].shape || inputs[i].dtype() != leaves[i].dtype)
      return bad_model("input {} is {}, not {}", i,
                       TensorType{inputs[i].shape(), inputs[i].dtype()}.to_string(),
                       leaves[i].to_string());
  return {};
}

// "conv1 (nn.conv2d)"
std::string place(const CallNode& call) {
  if (call.op == nullptr) return call.origin();
  return call.origin().empty() ? call.op->name
                               : fmt::format("{} ({})", call.origin(), call.op->name);
}

// Values of the nodes still needed, and how many uses each has left.
class Environment {
 public:
  explicit Environment(const std::vector<Expr>& order, const Expr& root) {
    for (const Expr& expr : order)
      for (const Expr& input : expr_inputs(expr)) ++uses_[input.get()];
    ++uses_[root.get()];
  }
  bool has(const Expr& expr) const { return values_.count(expr.get()) != 0; }
  void set(const Expr& expr, Values values) { values_[expr.get()] = std::move(values); }
  // Appends the leaves of `expr` and counts one use.
  void take(const Expr& expr, Values& to) {
    auto it = values_.find(expr.get());
    COLLAGE_CHECK(it != values_.end(), "a node is used before it is computed");
    to.insert(to.end(), it->second.begin(), it->second.end());
    drop(expr);
  }
  void drop(const Expr& expr) {
    if (--uses_[expr.get()] == 0) values_.erase(expr.get());
  }

 private:
  std::unordered_map<const ExprNode*, Values> values_;
  std::unordered_map<const ExprNode*, size_t> uses_;
};

Result<Values> evaluate(const Expr& expr, Environment& environment,
                        const EvaluateCall& evaluate_call) {
  Values inputs;
  switch (expr->kind()) {
    case ExprKind::kConstant:
      return Values{as<ConstantNode>(expr)->value};
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(expr);
      for (const Expr& arg : call->args) environment.take(arg, inputs);
      if (call->callee) environment.drop(call->callee);
      if (!is_control(*call)) return evaluate_call(*call, inputs);
      return evaluate_control(*call, inputs,
                              [&](const Function& function, std::span<const Tensor> given) {
                                return interpret(function, given, evaluate_call);
                              });
    }
    case ExprKind::kTuple:
      for (const Expr& field : as<TupleNode>(expr)->fields) environment.take(field, inputs);
      return inputs;
    case ExprKind::kTupleGetItem: {
      const auto* item = as<TupleGetItemNode>(expr);
      environment.take(item->tuple, inputs);
      const std::vector<Type>& fields = item->tuple->type().fields();
      auto index = static_cast<size_t>(item->index);
      size_t begin = 0;
      for (size_t i = 0; i < index; ++i) begin += fields[i].leaves().size();
      auto first = inputs.begin() + static_cast<std::ptrdiff_t>(begin);
      return Values(first, first + static_cast<std::ptrdiff_t>(fields[index].leaves().size()));
    }
    case ExprKind::kFunction:
    case ExprKind::kGlobalVar:
      return Values{};  // a callee: has no value of its own
    case ExprKind::kVar:
      return bad_model("variable '{}' is no parameter of the function", as<VarNode>(expr)->name);
  }
  return Values{};
}

}  // namespace

Result<std::vector<Tensor>> evaluate_call(const CallNode& call,
                                          std::span<const Tensor> flat_inputs) {
  if (call.op == nullptr) {
    if (as<FunctionNode>(call.callee) == nullptr)
      return unsupported("the interpreter cannot call a global function");
    return interpret(std::static_pointer_cast<const FunctionNode>(call.callee), flat_inputs);
  }
  if (is_control(call))
    return evaluate_control(call, flat_inputs,
                            [](const Function& function, std::span<const Tensor> inputs) {
                              return interpret(function, inputs);
                            });
  if (call.op->is_view) return Values{flat_inputs[0].reshaped(call.tensor_type().shape)};
  if (!call.op->reference) return unsupported("{} has no reference kernel", call.op->name);
  Values outputs;
  for (const TensorType& leaf : call.type().leaves())
    outputs.push_back(TRY(Tensor::allocate(leaf.dtype, leaf.shape)));
  Status status = call.op->reference(flat_inputs, call.attrs, outputs);
  if (!status.ok()) return std::move(status).with_context(place(call));
  return outputs;
}

std::optional<Tensor> value_by_types(const CallNode& call) {
  if (call.op == nullptr || call.op->name != "shape_of") return std::nullopt;
  const Shape& shape = call.args[0]->tensor_type().shape;
  return Tensor::from<int64_t>({static_cast<int64_t>(shape.size())}, shape);
}

Result<std::vector<Tensor>> interpret(const Function& function, std::span<const Tensor> inputs) {
  return interpret(function, inputs, evaluate_call);
}

Result<std::vector<Tensor>> interpret(const Function& function, std::span<const Tensor> inputs,
                                      const EvaluateCall& evaluate_call) {
  std::vector<TensorType> leaves;
  for (const Expr& param : function->params)
    for (TensorType& leaf : param->type().leaves()) leaves.push_back(std::move(leaf));
  TRY(check_inputs(leaves, inputs));
  const std::vector<Expr> order = post_order(function->body);
  Environment environment(order, function->body);
  size_t next = 0;
  for (const Expr& param : function->params) {
    size_t count = param->type().leaves().size();
    auto part = inputs.subspan(next, count);
    environment.set(param, Values(part.begin(), part.end()));
    next += count;
  }
  for (const Expr& expr : order) {
    if (expr->kind() == ExprKind::kVar && environment.has(expr)) continue;
    environment.set(expr, TRY(evaluate(expr, environment, evaluate_call)));
  }
  Values results;
  environment.take(function->body, results);
  return results;
}

}  // namespace collage
