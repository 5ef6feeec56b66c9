// The graph of a model, to be read and built. Expressions are immutable, shared, and typed when
// they are made. An expression that is used twice is computed once.
//
//   collage::Expression x = *collage::Expression::parameter("x", collage::DType::kFloat32, {1, 8});
//   collage::Expression y = *collage::Expression::call("nn.softmax", {x}, {{"axis", int64_t{-1}}});
//   collage::Expression f = *collage::Expression::function({x}, y);
//
// Graphs of models: collage/module.h. Operators and their attributes are those of Relay text.
#pragma once

#include <collage/context.h>
#include <collage/result.h>
#include <collage/tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace collage {

class ExprNode;  // opaque

class Expression {
 public:
  enum class Kind {
    kParameter,  // of a function
    kConstant,
    kCall,   // of an operator, or of a function
    kTuple,  // of several values
    kItem,   // one value of a tuple
    kFunction,
    kGlobal  // a function of the module by its name
  };
  // The value of an attribute; std::monostate is an absent optional value ("None" in text).
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                   std::vector<std::vector<int64_t>>, std::vector<double>>;
  using Attributes = std::vector<std::pair<std::string, Value>>;

  // Calls an operator. `origin` names the call in messages and reports, usually by its ONNX node.
  // kUnsupported: there is no such operator; kBadModel: arguments or attributes do not fit it.
  static Result<Expression> call(const std::string& op, const std::vector<Expression>& arguments,
                                 const Attributes& attributes = {}, const std::string& origin = "");
  // Calls a function, given itself or by its name. kBadModel: the arguments do not fit it.
  static Result<Expression> call(const Expression& function,
                                 const std::vector<Expression>& arguments,
                                 const std::string& origin = "");
  // Shares the tensor's storage. kBadModel: the tensor has none.
  static Result<Expression> constant(const Tensor& value);
  // kBadModel: a dimension is below 0.
  static Result<Expression> parameter(const std::string& name, DType dtype, const Shape& shape);
  static Expression tuple(const std::vector<Expression>& fields);
  // kBadModel: `tuple` is no tuple, or has fewer fields.
  static Result<Expression> item(const Expression& tuple, int64_t index);
  // These attributes have a meaning: "Primitive" (1: the function is one kernel, of any backend),
  // "Compiler" (the toolchain that runs it), "Composite" (its label). kBadModel: a parameter is no
  // parameter, or is listed twice.
  static Result<Expression> function(const std::vector<Expression>& parameters,
                                     const Expression& body, const Attributes& attributes = {});

  Kind kind() const;
  std::string type() const;  // "Tensor[(1, 8), float32]"; a tuple's, a function's
  // The tensors in the type, tuples flattened, without names. Empty for a function.
  std::vector<TensorInfo> tensors() const;
  // The operator of a call, "nn.conv2d"; else "".
  const std::string& op() const;
  // The name of a parameter or a global function; else "".
  const std::string& name() const;
  const std::string& origin() const;
  // The attributes of a call of an operator (defaults included) or of a function, sorted by name.
  Attributes attributes() const;
  // The arguments of a call, the fields of a tuple, or the tuple of an item.
  std::vector<Expression> arguments() const;
  // The function that a call of a function calls: one element, or none.
  std::vector<Expression> callee() const;
  // Parameters of a function, and its body: one element, or none.
  std::vector<Expression> parameters() const;
  std::vector<Expression> body() const;
  int64_t index() const;  // of an item; else 0
  Tensor value() const;   // of a constant; else undefined

  // Returns whether both are the same node.
  bool operator==(const Expression& other) const { return node_ == other.node_; }

  explicit Expression(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const ExprNode>& node() const { return node_; }

 private:
  std::shared_ptr<const ExprNode> node_;  // never null
};

}  // namespace collage
