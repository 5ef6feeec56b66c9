// Expressions of pure dataflow graph functions: immutable, shared, and typed when they are made.
// Sharing is meaningful: an expression used twice is computed once.
//
//   Expr x = make_var("x", TensorType{{1, 8}, DType::kFloat32});
//   Expr y = TRY(make_call("nn.relu", {x}));
//   Expr f = make_function({x}, y);
#pragma once

#include <collage/tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace collage {

struct OpDef;
class ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

enum class ExprKind { kVar, kConstant, kCall, kTuple, kTupleGetItem, kFunction, kGlobalVar };

class ExprNode {
 public:
  // Releases inputs one after the other, so that a graph of any depth can be destroyed.
  virtual ~ExprNode();
  ExprKind kind() const { return kind_; }
  const Type& type() const { return type_; }
  const TensorType& tensor_type() const { return type_.tensor(); }
  // The ONNX node (or other source) of the expression, for messages and reports; structural
  // equality ignores it.
  const std::string& origin() const { return origin_; }

 protected:
  ExprNode(ExprKind kind, Type type, std::string origin)
      : kind_(kind), type_(std::move(type)), origin_(std::move(origin)) {}
  // Called by a destructor for each input that it holds.
  static void release(const Expr& input);

 private:
  ExprKind kind_;
  Type type_;
  std::string origin_;
};

class VarNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kVar;
  VarNode(std::string name, Type type)
      : ExprNode(kKind, std::move(type), ""), name(std::move(name)) {}
  const std::string name;  // for people; identity is the node's
};

class ConstantNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kConstant;
  ConstantNode(Tensor value, std::string origin)
      : ExprNode(kKind, TensorType{value.shape(), value.dtype()}, std::move(origin)),
        value(std::move(value)) {}
  const Tensor value;
};

// A call of an operator (`op` set) or of a function (`callee`: a Function literal or a GlobalVar).
class CallNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kCall;
  CallNode(const OpDef* op, Expr callee, std::vector<Expr> args, Attrs attrs, Type type,
           std::string origin)
      : ExprNode(kKind, std::move(type), std::move(origin)),
        op(op),
        callee(std::move(callee)),
        args(std::move(args)),
        attrs(std::move(attrs)) {}
  ~CallNode() override {
    release(callee);
    for (const Expr& arg : args) release(arg);
  }
  const OpDef* const op;
  const Expr callee;
  const std::vector<Expr> args;
  const Attrs attrs;  // of the operator, normalised
};

class TupleNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kTuple;
  TupleNode(std::vector<Expr> fields, Type type)
      : ExprNode(kKind, std::move(type), ""), fields(std::move(fields)) {}
  ~TupleNode() override {
    for (const Expr& field : fields) release(field);
  }
  const std::vector<Expr> fields;
};

class TupleGetItemNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kTupleGetItem;
  TupleGetItemNode(Expr tuple, int64_t index)
      : ExprNode(kKind, tuple->type().fields()[static_cast<size_t>(index)], ""),
        tuple(std::move(tuple)),
        index(index) {}
  ~TupleGetItemNode() override { release(tuple); }
  const Expr tuple;
  const int64_t index;
};

// A function literal. These attributes have a meaning: "Primitive" (1: a kernel), "Compiler"
// (target), "global_symbol", "Composite" (pattern label).
class FunctionNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kFunction;
  FunctionNode(std::vector<Expr> params, Expr body, Attrs attrs);
  ~FunctionNode() override { release(body); }
  const std::vector<Expr> params;  // Vars
  const Expr body;
  const Attrs attrs;
  const Type& result_type() const { return body->type(); }
};

class GlobalVarNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kGlobalVar;
  GlobalVarNode(std::string name, Type type)
      : ExprNode(kKind, std::move(type), ""), name(std::move(name)) {}
  const std::string name;
};

using Function = std::shared_ptr<const FunctionNode>;

// Returns the node as type T, or null: `if (auto* call = as<CallNode>(expr))`.
template <typename T>
const T* as(const Expr& expr) {
  return expr != nullptr && expr->kind() == T::kKind ? static_cast<const T*>(expr.get()) : nullptr;
}
// Returns the call if `expr` is a call of the operator of that name, else null.
const CallNode* as_op(const Expr& expr, std::string_view op_name);

Expr make_var(std::string name, Type type);
Expr make_constant(Tensor value, std::string origin = "");
template <typename T>
Expr make_scalar(T value) {
  return make_constant(Tensor::scalar<T>(value));
}
// Checks arity and attributes, fills defaults and infers the type; the error names the operator and
// what is wrong.
Result<Expr> make_call(std::string_view op_name, std::vector<Expr> args, Attrs attrs = {},
                       std::string origin = "");
Result<Expr> make_call(const OpDef& op, std::vector<Expr> args, Attrs attrs = {},
                       std::string origin = "");
// Calls a Function literal or GlobalVar; argument types must equal parameter types.
Result<Expr> make_function_call(Expr callee, std::vector<Expr> args, std::string origin = "");
Expr make_tuple(std::vector<Expr> fields);
Result<Expr> make_tuple_get_item(Expr tuple, int64_t index);
Function make_function(std::vector<Expr> params, Expr body, Attrs attrs = {});
Expr make_global_var(std::string name, Type type);

}  // namespace collage
