// The graph of a model, to be read and to be built: expressions are immutable and shared, and typed
// when they are made. One that is used twice is computed once.
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
  // Of an attribute; std::monostate is an absent optional value ("None" in text).
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                   std::vector<std::vector<int64_t>>, std::vector<double>>;
  using Attributes = std::vector<std::pair<std::string, Value>>;

  // A call of an operator. `origin`: what messages and reports call it, the ONNX node as a rule.
  // kUnsupported: no such operator; kBadModel: arguments or attributes that do not fit it.
  static Result<Expression> call(const std::string& op, const std::vector<Expression>& arguments,
                                 const Attributes& attributes = {}, const std::string& origin = "");
  // A call of a function, by itself or by its name. kBadModel: arguments that do not fit it.
  static Result<Expression> call(const Expression& function,
                                 const std::vector<Expression>& arguments,
                                 const std::string& origin = "");
  // Shares the tensor's storage. kBadModel: it has none.
  static Result<Expression> constant(const Tensor& value);
  // kBadModel: a dimension below 0.
  static Result<Expression> parameter(const std::string& name, DType dtype, const Shape& shape);
  static Expression tuple(const std::vector<Expression>& fields);
  // kBadModel: no tuple, or none with that many fields.
  static Result<Expression> item(const Expression& tuple, int64_t index);
  // Of attributes these mean something: "Primitive" (1: it is one kernel, whoever runs it),
  // "Compiler" (the toolchain that runs it), "Composite" (what it is called). kBadModel: a
  // parameter is none, or stands there twice.
  static Result<Expression> function(const std::vector<Expression>& parameters,
                                     const Expression& body, const Attributes& attributes = {});

  Kind kind() const;
  std::string type() const;  // "Tensor[(1, 8), float32]"; a tuple's, a function's
  // The tensors in the type, tuples flattened, without names; none of a function.
  std::vector<TensorInfo> tensors() const;
  // Of a call of an operator, the operator: "nn.conv2d"; else "".
  const std::string& op() const;
  // Of a parameter or a global function; else "".
  const std::string& name() const;
  const std::string& origin() const;
  // Of a call of an operator, defaults included, or of a function; sorted by name.
  Attributes attributes() const;
  // Of a call; the fields of a tuple; the tuple that an item is of.
  std::vector<Expression> arguments() const;
  // Of a call of a function that function: one, or none.
  std::vector<Expression> callee() const;
  // Of a function: its parameters, and what it gives: one, or none.
  std::vector<Expression> parameters() const;
  std::vector<Expression> body() const;
  int64_t index() const;  // of an item; else 0
  Tensor value() const;   // of a constant; else undefined

  // The very same expression.
  bool operator==(const Expression& other) const { return node_ == other.node_; }

  explicit Expression(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const ExprNode>& node() const { return node_; }

 private:
  std::shared_ptr<const ExprNode> node_;  // never null
};

}  // namespace collage
