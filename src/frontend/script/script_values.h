// What stands inside the lines of script, read and printed: terms, extents, types of arrays,
// attributes.
//
//   X[vi, vk] * T.float32(2.0)      T.max(x[i], 0)      T.Buffer[(n, 2 * d), "float32"]
//
// Numbers without a type are int32 or float32; a constant takes the type of the other operand.
// `//` rounds down, as integer division of terms does; `/` is for real numbers.
#pragma once

#include <fmt/format.h>

#include <map>
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
  std::map<std::string, DType> arrays;     ///< the types of their elements
};

Result<Term> read_term(TextReader& reader, const ScriptScope& scope);
/// Reads indices from behind the '[' on; x[()] has none.
Result<std::vector<Term>> read_indices(TextReader& reader, const ScriptScope& scope);
/// Reads a constant; its numbers, and "inf" or "nan", are of that type unless they state one.
Result<Term> read_constant(TextReader& reader, const ScriptScope& scope, DType dtype);
/// Reads an integer, or an expression of named ones and of symbols, which may stand in quotes.
/// kUnsupported: a symbol without a value.
Result<int64_t> read_extent(TextReader& reader, const ScriptScope& scope);

/// The names of variables in text, by those in terms.
using ScriptNames = std::map<std::string, std::string>;
/// `least`: the precedence below which parentheses are needed.
Result<std::string> term_script(const Term& term, const ScriptNames& names, int least = 0);
Result<std::string> element_script(const std::string& array, const std::vector<Term>& at,
                                   const ScriptNames& names);
/// 0.5, "inf", 3 or True
std::string number_script(const Term& constant);

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
/// "(16, 8)", "(4,)"
std::string shape_script(const Shape& shape);
/// "T.Buffer((16, 8), "float32")"
std::string array_script(std::string_view what, const TensorType& type,
                         const std::string& memory = "");

/// Reads {"name": value, …}.
Result<Attrs> read_attrs(TextReader& reader);
std::string attr_script(const AttrValue& value);
/// Returns the name if Python takes it for one.
Result<std::string> script_name(const std::string& name);
/// An attribute of a call: from_ where its name is a word of Python's, from.
Result<std::string> keyword_argument_script(const std::string& name);
std::string keyword_argument(const std::string& script);

/// Returns what `print` gives for each, with commas between.
template <typename Items, typename Print>
Result<std::string> with_commas(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items)
    text += (text.empty() ? "" : ", ") + TRY(Result<std::string>(print(item)));
  return text;
}

template <typename... Args>
void add_line(std::string& text, int level, fmt::format_string<Args...> format, Args&&... args) {
  text.append(4 * static_cast<size_t>(level), ' ');
  text += fmt::format(format, std::forward<Args>(args)...) + "\n";
}

}  // namespace collage::tensor_program
