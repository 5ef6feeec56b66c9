// Layouts: programs that only move the elements of one array, as data that passes compare and join.
//
//   program { param x: float32[16, 64]; result y[i0:4, i1:16, i2:16] = x[i1, i0 * 16 + i2]; }
//
// Their names are always those, so that two programs that move elements alike have one text.
#pragma once

#include <optional>

#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// A stage every element of which is an element of one other array, wherever values do not decide.
bool only_moves(const Stage& stage);
/// Which gives that array as it is.
bool is_identity(const Program& program, const Stage& stage);

/// What a stage that only moves elements does to the array that it reads.
Program layout_of(const Program& program, const Stage& stage);
/// What a call does that only moves the elements of its one argument: of a program without a
/// schedule or with memory scopes, of a transpose, or of an operator that renames elements. Nothing
/// where it is no such call.
std::optional<Program> layout_of(const CallNode& call);

/// First `inner`, then `outer`; nothing where its indices would be unreasonably long.
std::optional<Program> joined(const Program& inner, const Program& outer);
/// Whether they undo each other.
bool cancel(const Program& inner, const Program& outer);
/// Whether a layout moves nothing.
bool is_identity(const Program& layout);

}  // namespace collage::tensor_program
