// Transformations of programs: each takes a program and gives another that computes the same, or a
// reason. Small ones that compose: a layout is introduced for a weight, its stage is lifted out and
// computed once, and layouts that undo each other cancel.
#pragma once

#include <optional>
#include <string_view>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Has everything that reads `buffer` read a new stage instead, `buffer`_blocked, in which
/// dimension `dim` is cut into blocks of `factor` elements that stand innermost; the extent is a
/// multiple of the factor.
///
///   B[k, j]  becomes  B_blocked[j / 8, k, j % 8],  stage B_blocked[j1:16, k:128, j0:8] = …
///   (for dim 1, which moves outermost where `outermost`)
Result<Program> block_layout(const Program& program, std::string_view buffer, size_t dim,
                             int64_t factor, bool outermost = false);

/// A part of a program as a program of its own, and what remains.
struct Lifted {
  Program stage, rest;
};
/// A stage that is no result, with all that it is computed from; in the rest, a buffer of the
/// stage's name and type, the last one, stands in its place, and what served the stage alone is
/// gone.
Result<Lifted> lift_stage(const Program& program, std::string_view stage);
/// A result that only moves the elements of another stage: in the rest that stage is a result in
/// its place; the move is a program of its own (layout.h). A schedule in which threads shared the
/// result's loops alone goes too.
Result<Lifted> lift_result(const Program& program, std::string_view result);

/// What a stage of the program is where it depends on constants with values alone; else none.
Result<std::optional<Tensor>> constant_value(const Program& program, const Stage& stage);

/// Stages that depend on constants with values alone are computed, once, and become constants.
/// Results stay stages.
Result<Program> fold_constants(const Program& program);

/// Stages that only move elements are joined with such stages that they read, but for indices that
/// would become unreasonably long; where they undo each other their readers get the original.
Program cancel_layouts(const Program& program);

/// Without stages that nothing reads, buffers of constants that nothing reads, and schedule steps
/// of missing stages.
Program without_unused(const Program& program);

}  // namespace collage::tensor_program
