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

/// Returns whether every element is an element of one other array, at indices without values.
bool only_moves(const Stage& stage);
/// Returns whether it gives that array unchanged.
bool is_identity(const Program& program, const Stage& stage);

/// Returns what a stage that only moves elements does to the array that it reads.
Program layout_of(const Program& program, const Stage& stage);
/// Returns what a call does that only moves the elements of its one argument: a program without a
/// schedule or with memory scopes, a transpose, or an operator that renames elements. None for
/// other calls.
std::optional<Program> layout_of(const CallNode& call);

/// Applies `inner`, then `outer`; none if its indices would be unreasonably long.
std::optional<Program> joined(const Program& inner, const Program& outer);
/// Returns whether they undo each other.
bool cancel(const Program& inner, const Program& outer);
/// Returns whether a layout moves nothing.
bool is_identity(const Program& layout);

}  // namespace collage::tensor_program
