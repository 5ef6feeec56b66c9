// Types of expressions: a tensor (static shape and dtype), a tuple of types, or a function. Shapes
// are always known: dynamic dimensions are given values at import.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "runtime/tensor_type.h"

namespace collage {

class Type {
 public:
  enum class Kind { kTensor, kTuple, kFunction };

  Type() : Type(TensorType{}) {}
  Type(TensorType tensor)
      : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}  // NOLINT: implicit on purpose
  static Type tuple(std::vector<Type> fields) { return Type(Kind::kTuple, std::move(fields)); }
  // The parameters, then the result.
  static Type function(std::vector<Type> params, Type result) {
    params.push_back(std::move(result));
    return Type(Kind::kFunction, std::move(params));
  }

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  bool is_tuple() const { return kind_ == Kind::kTuple; }
  bool is_function() const { return kind_ == Kind::kFunction; }
  const TensorType& tensor() const {
    COLLAGE_CHECK(is_tensor(), "{} is not a tensor type", to_string());
    return tensor_;
  }
  const std::vector<Type>& fields() const {
    COLLAGE_CHECK(is_tuple(), "{} is not a tuple type", to_string());
    return fields_;
  }
  std::vector<Type> params() const { return {fields_.begin(), fields_.end() - 1}; }
  const Type& result() const { return fields_.back(); }

  // The tensor types inside, tuples flattened in order.
  std::vector<TensorType> leaves() const;
  std::string to_string() const;  // "(Tensor[(1), float32], int64)", "fn (…) -> …"
  bool operator==(const Type&) const = default;

 private:
  Type(Kind kind, std::vector<Type> fields) : kind_(kind), fields_(std::move(fields)) {}
  Kind kind_;
  TensorType tensor_;
  std::vector<Type> fields_;
};

}  // namespace collage
