#include <collage/expression.h>
#include <collage/passes.h>

#include <atomic>
#include <memory>
#include <unordered_set>

#include "backend/targets/backends.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "compiler/attributes.h"
#include "ir/expr.h"
#include "ir/op.h"
#include "ir/predicate.h"
#include "ir/visitor.h"

namespace collage {

namespace {

const std::string kNone;

std::vector<Expr> nodes_of(const std::vector<Expression>& expressions) {
  std::vector<Expr> nodes;
  for (const Expression& expression : expressions) nodes.push_back(expression.node());
  return nodes;
}

std::vector<Expression> expressions_of(const std::vector<Expr>& nodes) {
  std::vector<Expression> expressions;
  for (const Expr& node : nodes) expressions.emplace_back(node);
  return expressions;
}

template <typename Made>
Result<Expression> expression_of(Result<Made>&& made) {
  if (!made) return std::move(made).status();
  return Expression(*std::move(made));
}

}  // namespace

Result<Expression> Expression::call(const std::string& op, const std::vector<Expression>& arguments,
                                    const Attributes& attributes, const std::string& origin) {
  return without_exceptions([&] {
    register_all();
    return expression_of(make_call(op, nodes_of(arguments), attrs_of(attributes), origin));
  });
}

Result<Expression> Expression::call(const Expression& function,
                                    const std::vector<Expression>& arguments,
                                    const std::string& origin) {
  const Kind kind = function.kind();
  if (kind != Kind::kFunction && kind != Kind::kGlobal)
    return bad_model("what is called is no function but a {}", function.type());
  return without_exceptions([&] {
    return expression_of(make_function_call(function.node(), nodes_of(arguments), origin));
  });
}

Result<Expression> Expression::constant(const Tensor& value) {
  if (!value.defined()) return bad_model("a constant needs a tensor with storage");
  return Expression(make_constant(value));
}

Result<Expression> Expression::parameter(const std::string& name, DType dtype, const Shape& shape) {
  TRY(checked_num_elements(shape));
  return Expression(make_var(name, TensorType{shape, dtype}));
}

Expression Expression::tuple(const std::vector<Expression>& fields) {
  return Expression(make_tuple(nodes_of(fields)));
}

Result<Expression> Expression::item(const Expression& tuple, int64_t index) {
  return expression_of(make_tuple_get_item(tuple.node(), index));
}

Result<Expression> Expression::function(const std::vector<Expression>& parameters,
                                        const Expression& body, const Attributes& attributes) {
  std::unordered_set<const ExprNode*> seen;
  for (const Expression& parameter : parameters) {
    if (parameter.kind() != Kind::kParameter)
      return bad_model("a parameter of a function is none but a {}", parameter.type());
    if (!seen.insert(parameter.node().get()).second)
      return bad_model("the parameter %{} stands there twice", parameter.name());
  }
  return Expression(make_function(nodes_of(parameters), body.node(), attrs_of(attributes)));
}

Expression::Kind Expression::kind() const {
  switch (node_->kind()) {
    case ExprKind::kVar:
      return Kind::kParameter;
    case ExprKind::kConstant:
      return Kind::kConstant;
    case ExprKind::kCall:
      return Kind::kCall;
    case ExprKind::kTuple:
      return Kind::kTuple;
    case ExprKind::kTupleGetItem:
      return Kind::kItem;
    case ExprKind::kFunction:
      return Kind::kFunction;
    case ExprKind::kGlobalVar:
      break;
  }
  return Kind::kGlobal;
}

std::string Expression::type() const { return node_->type().to_string(); }

std::vector<TensorInfo> Expression::tensors() const {
  std::vector<TensorInfo> infos;
  if (node_->type().is_function()) return infos;
  for (const TensorType& leaf : node_->type().leaves())
    infos.push_back({"", leaf.shape, leaf.dtype});
  return infos;
}

const std::string& Expression::op() const {
  const auto* call = as<CallNode>(node_);
  return call != nullptr && call->op != nullptr ? call->op->name : kNone;
}

const std::string& Expression::name() const {
  if (const auto* var = as<VarNode>(node_)) return var->name;
  if (const auto* global = as<GlobalVarNode>(node_)) return global->name;
  return kNone;
}

const std::string& Expression::origin() const { return node_->origin(); }

Expression::Attributes Expression::attributes() const {
  if (const auto* call = as<CallNode>(node_)) return attributes_of(call->attrs);
  if (const auto* function = as<FunctionNode>(node_)) return attributes_of(function->attrs);
  return {};
}

std::vector<Expression> Expression::arguments() const {
  if (const auto* call = as<CallNode>(node_)) return expressions_of(call->args);
  return expressions_of(expr_inputs(node_));
}

std::vector<Expression> Expression::callee() const {
  const auto* call = as<CallNode>(node_);
  if (call == nullptr || call->callee == nullptr) return {};
  return {Expression(call->callee)};
}

std::vector<Expression> Expression::parameters() const {
  const auto* function = as<FunctionNode>(node_);
  return function != nullptr ? expressions_of(function->params) : std::vector<Expression>();
}

std::vector<Expression> Expression::body() const {
  const auto* function = as<FunctionNode>(node_);
  if (function == nullptr) return {};
  return {Expression(function->body)};
}

int64_t Expression::index() const {
  const auto* item = as<TupleGetItemNode>(node_);
  return item != nullptr ? item->index : 0;
}

Tensor Expression::value() const {
  const auto* constant = as<ConstantNode>(node_);
  return constant != nullptr ? constant->value : Tensor();
}

Status passes::register_property(const std::string& name,
                                 std::function<Expression::Value(const Expression&)> of) {
  if (!of) return usage_error("the property '{}' has no function", name);
  register_all();
  auto told = std::make_shared<std::atomic<bool>>(false);
  return collage::register_property(
      name, [name, of = std::move(of), told](const Expr& expr) -> std::optional<AttrValue> {
        Result<Expression::Value> value =
            without_exceptions([&]() -> Result<Expression::Value> { return of(Expression(expr)); });
        if (!value && !told->exchange(true))
          log::warn("property '{}' counts as unknown: {}", name, value.status().message());
        if (!value || std::holds_alternative<std::monostate>(*value)) return std::nullopt;
        return converted<AttrValue>(*value);
      });
}

}  // namespace collage
