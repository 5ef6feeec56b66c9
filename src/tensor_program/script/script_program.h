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

#include "tensor_program/program.h"
#include "tensor_program/script/script_values.h"

namespace collage::tensor_program {

/// Reads the function from its '(' on; its `def` is `start`. Graphs may call the program.
Result<Program> read_program(TextReader& reader, const Token& start, const ScriptScope& scope);

/// Returns the function's lines, each behind `margin`. kUnsupported: script cannot say it.
Result<std::string> program_script(const std::string& name, const Program& program,
                                   const std::string& margin);

/// Returns the name if Python takes it for one.
Result<std::string> script_name(const std::string& name);
/// "(16, 8)", "(4,)"
std::string shape_script(const Shape& shape);
/// "0.5", "1.0", of a number that is finite.
std::string real_script(double value, DType dtype);

}  // namespace collage::tensor_program
