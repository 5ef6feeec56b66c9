#include "ir/expr.h"

#include "ir/op.h"

namespace collage {

namespace {

Type function_type(const std::vector<Expr>& params, const Expr& body) {
  std::vector<Type> types;
  for (const Expr& param : params) types.push_back(param->type());
  return Type::function(std::move(types), body->type());
}

// Inputs whose last owner is being destroyed on this thread; there only while that goes on.
thread_local std::vector<Expr>* pending = nullptr;
thread_local bool draining = false;

}  // namespace

void ExprNode::release(const Expr& input) {
  if (input == nullptr || input.use_count() > 1) return;
  if (pending == nullptr) pending = new std::vector<Expr>;
  pending->push_back(input);
}

ExprNode::~ExprNode() {
  if (pending == nullptr || draining) return;
  draining = true;
  while (!pending->empty()) {
    Expr last = std::move(pending->back());
    pending->pop_back();
  }
  delete pending;
  pending = nullptr;
  draining = false;
}

FunctionNode::FunctionNode(std::vector<Expr> params, Expr body, Attrs attrs)
    : ExprNode(kKind, function_type(params, body), ""),
      params(std::move(params)),
      body(std::move(body)),
      attrs(std::move(attrs)) {}

const CallNode* as_op(const Expr& expr, std::string_view op_name) {
  const auto* call = as<CallNode>(expr);
  return call != nullptr && call->op != nullptr && call->op->name == op_name ? call : nullptr;
}

Expr make_var(std::string name, Type type) {
  return std::make_shared<VarNode>(std::move(name), std::move(type));
}

Expr make_constant(Tensor value, std::string origin) {
  return std::make_shared<ConstantNode>(std::move(value), std::move(origin));
}

Result<Expr> make_call(std::string_view op_name, std::vector<Expr> args, Attrs attrs,
                       std::string origin) {
  const OpDef* op = find_op(op_name);
  if (op == nullptr) return unsupported("unknown operator '{}'", op_name);
  return make_call(*op, std::move(args), std::move(attrs), std::move(origin));
}

Result<Expr> make_call(const OpDef& op, std::vector<Expr> args, Attrs attrs, std::string origin) {
  int count = static_cast<int>(args.size());
  if (count < op.min_args || (op.max_args >= 0 && count > op.max_args))
    return bad_model("{}: takes {} to {} arguments, not {}", op.name, op.min_args, op.max_args,
                     count);
  Attrs normalised = TRY(op.normalise(attrs));
  std::vector<Type> types;
  for (const Expr& arg : args) types.push_back(arg->type());
  Result<Type> type = op.infer_type(types, normalised);
  if (!type) return std::move(type).status().with_context(op.name);
  return Expr(std::make_shared<CallNode>(&op, nullptr, std::move(args), std::move(normalised),
                                         *type, std::move(origin)));
}

Result<Expr> make_function_call(Expr callee, std::vector<Expr> args, std::string origin) {
  if (!callee->type().is_function()) return bad_model("called value is not a function");
  std::vector<Type> params = callee->type().params();
  if (params.size() != args.size())
    return bad_model("function takes {} arguments, not {}", params.size(), args.size());
  for (size_t i = 0; i < args.size(); ++i)
    if (!(args[i]->type() == params[i]))
      return bad_model("argument {} has type {}, not {}", i, args[i]->type().to_string(),
                       params[i].to_string());
  Type type = callee->type().result();
  return Expr(std::make_shared<CallNode>(nullptr, std::move(callee), std::move(args), Attrs{},
                                         std::move(type), std::move(origin)));
}

Expr make_tuple(std::vector<Expr> fields) {
  std::vector<Type> types;
  for (const Expr& field : fields) types.push_back(field->type());
  return std::make_shared<TupleNode>(std::move(fields), Type::tuple(std::move(types)));
}

Result<Expr> make_tuple_get_item(Expr tuple, int64_t index) {
  if (!tuple->type().is_tuple()) return bad_model("projection of a value that is not a tuple");
  if (index < 0 || index >= static_cast<int64_t>(tuple->type().fields().size()))
    return bad_model("projection index {} out of range", index);
  return Expr(std::make_shared<TupleGetItemNode>(std::move(tuple), index));
}

Function make_function(std::vector<Expr> params, Expr body, Attrs attrs) {
  return std::make_shared<FunctionNode>(std::move(params), std::move(body), std::move(attrs));
}

Expr make_global_var(std::string name, Type type) {
  return std::make_shared<GlobalVarNode>(std::move(name), std::move(type));
}

}  // namespace collage
