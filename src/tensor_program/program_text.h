// The text of tensor programs. What Program::to_string prints parses to an equal program. In a
// module (ir/text_printer.h) a program has a name behind the first word, and its constants all
// values.
//
//   program   = "program" [symbols] "{" declaration* [schedule] "}"
//   symbols   = "(" name "=" n { "," name "=" n } ")"               n: extents may be expressions
//               over these (extent.h) where a number may stand
//   param     = "param" name ":" type [scope] ";"                   type = dtype "[" extents "]"
//   const     = "const" name ":" type [ "=" "{" numbers "}" ] ";"   Program::to_string leaves out
//               values of more than 64 elements
//   inout     = "inout" name "[" axes "]" [scope] ":" dtype ";"     a parameter of that name, and a
//               result that starts from it; updates of it follow, here or further down
//   stage     = "stage" name "[" axes "]" value ";"                 value = "=" body | ":" dtype
//   result    = "result" name "[" axes "]" [scope] value ";"        scope = "in" string
//   body      = term | combine term | "extern" string "(" names ")" ":" dtype
//   update    = "update" name "[" terms "]" "=" combine term ";"    of the stage before it, or the
//               first of an inout; its term may read what it writes
//   combine   = ("set" | "sum" | "product" | "max" | "min") "(" axes ")"
//   schedule  = "schedule" "{" ( name [ ".update(" n ")" ] "." primitive "(" … ")" ";" )* "}"
//               a split's factor is a number, or "by" term over symbols
//
// An axis is name:extent. Terms are written as in C, with 1 an int32, 1i64 an int64, 0.5f a
// float32, 0.5d a float64, inff and nanf; dtype(x) is a cast.
// A stage of one reduction over its own axes is written in one line: stage C[i:2] = sum(k:3) A[i,
// k]; Comments run from // to the end of the line. A scope is where an array lies in a device's
// memory: in "texture", in "global" for its ordinary one; without it it lies anywhere.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "tensor_program/extent.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Returns the verified program; or what is wrong and where.
Result<Program> parse_program(std::string_view text);

/// A check of a program beside `verify`. `where` gets the name of the buffer or stage that does not
/// meet it.
using ProgramCheck = std::function<Status(const Program& program, std::string* where)>;

/// Parses what stands between the braces, in a larger text where it starts at `first`; errors state
/// their place there. Extents may be over the symbols, which the program then has their values of.
Result<Program> parse_declarations(std::string_view text, TextPlace first,
                                   const ProgramCheck& check, const Symbols& symbols = {});
/// Returns that text, with all values of constants.
std::string declarations_text(const Program& program);

/// The suffix of an inout's name in the name of its parameter.
inline constexpr std::string_view kInoutSuffix = "_in";

std::string term_to_string(const Term& term);
std::string primitive_text(const Primitive& step);  ///< "C.parallel(i);"
/// Returns a finite number with a point or an exponent, and the digits that its type needs.
std::string decimal_text(double value, DType dtype);
/// Returns whether the update combines every element with something, and names it by its axes.
bool over_own_axes(const Stage& stage, const Update& update);

/// "sum", "max", …
std::string_view combine_text(Combine combine);
std::optional<Combine> combine_of(std::string_view text);

/// The spelling of schedule primitives, and their arguments.
struct PrimitiveSpelling {
  PrimitiveKind kind;
  std::string_view text;
  size_t least_names, most_names;
  int64_t least_number = 0, most_number = 0;  ///< 0: none is given
  bool of_whole_stages = false;               ///< not of updates
};
/// In the order of PrimitiveKind.
const std::vector<PrimitiveSpelling>& primitive_spellings();

}  // namespace collage::tensor_program
