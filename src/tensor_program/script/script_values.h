// What stands inside the lines of script: terms, extents and types of arrays.
//
//   X[vi, vk] * T.float32(2.0)      T.max(x[i], 0)      T.Buffer[(n, 2 * d), "float32"]
//
// Numbers without a type are int32 or float32; a constant takes the type of the other operand.
// `//` rounds down, as integer division of terms does; `/` is for real numbers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ir/attrs.h"
#include "ir/script_reader.h"
#include "ir/type.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// What names stand for.
struct ScriptScope {
  std::map<std::string, int64_t> numbers;  ///< n = 16, above the module
  std::map<std::string, Term> variables;   ///< loops and axes of blocks
  /// Returns the type of an array's elements, one of which is read; none: there is no such array.
  std::function<std::optional<DType>(const std::string& name)> array;
};

Result<Term> read_term(TextReader& reader, const ScriptScope& scope);
/// Reads a constant; its numbers are of that type, unless they state one.
Result<Term> read_constant(TextReader& reader, const ScriptScope& scope, DType dtype);
/// Returns the constant with that type.
Term constant_as(const Term& constant, DType dtype);

/// Reads an integer, or an expression of named ones. kUnsupported: a symbol.
Result<int64_t> read_extent(TextReader& reader, const ScriptScope& scope);
/// Reads (16, n) or [16, n].
Result<Shape> read_shape(TextReader& reader, const ScriptScope& scope);
Result<DType> read_dtype(TextReader& reader);
/// Reads what follows T.Buffer or R.Tensor, in brackets of either kind: a shape, and maybe an
/// element type (float32 without it). `memory` gets scope="…"; null: there is none.
Result<TensorType> read_array_type(TextReader& reader, const ScriptScope& scope,
                                   std::string* memory = nullptr);
/// Reads the same from behind the opening bracket, up to `close`.
Result<TensorType> read_array_type_to(std::string_view close, TextReader& reader,
                                      const ScriptScope& scope, std::string* memory = nullptr);

/// Reads an attribute's value: as in Relay text, but for float("inf").
Result<AttrValue> read_attr_value(TextReader& reader);
/// Reads {"name": value, …}.
Result<Attrs> read_attrs(TextReader& reader);

}  // namespace collage::tensor_program
