// A program whose extents are symbols, which the shapes of its arguments decide:
//
//   program (n, d, scale: float32 = 1.0) {
//     param X: float32[n, 2 * d];
//     result Y[i:n, j:d] = X[i, j] * scale / (1.0f + exp(-X[i, j])) * X[i, d + j];
//   }
//
// Between the parentheses stand the symbols that are extents, and attributes of type int64 or
// float32, which may have a default. Every extent must follow from the parameters' shapes: some
// dimension is the symbol alone, or linear in it where the others are known. Symbols and attributes
// may stand wherever a number may; attributes of type int64 also in extents.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/type.h"
#include "tensor_program/extent.h"

namespace collage::tensor_program {

class SymbolicProgram {
 public:
  static Result<SymbolicProgram> parse(std::string_view text);

  size_t params() const { return params_.size(); }
  DType dtype_of_param(size_t i) const { return params_[i].dtype; }
  const std::vector<AttrSpec>& attributes() const { return attributes_; }
  const std::vector<std::string>& extents() const { return extents_; }

  /// Returns the extents for arguments of these types, or which argument does not fit.
  Result<Symbols> bind(std::span<const Type> args, const Attrs& attrs) const;
  /// Returns the parameters' types for these extents.
  Result<std::vector<TensorType>> types_of_params(const Symbols& extents, const Attrs& attrs) const;
  /// Returns the text with all symbols replaced, as parse_program takes it.
  Result<std::string> text_for(const Symbols& extents, const Attrs& attrs) const;

 private:
  struct Param {
    std::string name;
    DType dtype;
    std::vector<Term> shape;
  };
  /// A word of the text, or an extent in its place.
  struct Piece {
    Token token;
    Term extent;
  };
  friend class SymbolicParser;

  Status check_extents_follow() const;
  Symbols with_attributes(const Symbols& extents, const Attrs& attrs) const;

  std::vector<std::string> extents_;
  std::vector<AttrSpec> attributes_;
  std::vector<Param> params_;
  std::vector<Piece> pieces_;
};

}  // namespace collage::tensor_program
