// Functions of loops in script, as programs:
//
//   def mm(X: T.Buffer[(16, 32), "float32"], W: T.Buffer[(32, 24), "float32"],
//          Y: T.Buffer[(16, 24), "float32"]):
//       for i, j, k in T.grid(16, 24, 32):
//           with T.block("body"):
//               vi, vj, vk = T.axis.remap("SSR", [i, j, k])
//               with T.init():
//                   Y[vi, vj] = 0
//               Y[vi, vj] += X[vi, vk] * W[vk, vj]
//
// Each array that is written is a stage, whose axes are the loops that index it; other loops are an
// update's. Parameters that are written are results, and stand last, in the order in which they are
// written. A block that writes all of an array, without T.init, is a stage's value; T.init is what
// a stage starts from, and without it zeros are; a block with T.init alone starts it for blocks
// further down. A nest of loops holds one block, or one assignment without a block. What Python's
// names leave open stands in attributes:
//
//   T.func_attr({"schedule": "Y.parallel(i);"})       as in the text of programs (program_text.h)
//   T.func_attr({"buffers": "p0 c1 p2"})              where constants stand between parameters
#pragma once

#include "frontend/script/script_values.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// How an update's combination is written: as an assignment, or a term of the element itself.
struct CombineSpelling {
  Combine combine;
  TermOp op;
  std::string_view assignment;
};
inline constexpr CombineSpelling kCombineSpellings[] = {
    {Combine::kSum, TermOp::kAdd, "+="},
    {Combine::kProduct, TermOp::kMultiply, "*="},
    {Combine::kMax, TermOp::kMax, ""},
    {Combine::kMin, TermOp::kMin, ""}};

/// The kinds of axes; the first name of a kind is printed.
struct AxisKind {
  std::string_view name;
  char letter;
};
inline constexpr AxisKind kAxisKinds[] = {{"spatial", 'S'}, {"reduce", 'R'}, {"opaque", 'O'},
                                          {"S", 'S'},       {"R", 'R'},      {"scan", 'O'}};

/// Reads the function from its '(' on; its `def` is `start`. Graphs may call the program.
Result<Program> read_program(TextReader& reader, const Token& start, const ScriptScope& scope);

/// Returns the function's lines in a class. kUnsupported: script cannot say it.
Result<std::string> program_script(const std::string& name, const Program& program);

}  // namespace collage::tensor_program
