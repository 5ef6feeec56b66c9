// Transformations of programs: each takes a program and returns another that computes the same, or
// a reason. They compose: a stage of a weight's layout is lifted out and computed once, and layouts
// that undo each other cancel.
#pragma once

#include <optional>
#include <string_view>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// A part of a program as a program of its own, and what remains.
struct Lifted {
  Program stage, rest;
};
/// Lifts a stage that is no result, with all that it is computed from; in the rest, a buffer of
/// the stage's name and type, the last one, replaces it, and what served the stage alone is
/// removed.
Result<Lifted> lift_stage(const Program& program, std::string_view stage);
/// Lifts a result that only moves the elements of another stage: in the rest that stage becomes the
/// result; the move is a program of its own (layout.h). A schedule that only divides the result's
/// loops among threads is dropped.
Result<Lifted> lift_result(const Program& program, std::string_view result);

/// Returns a stage's value if it depends on constants with values alone; else none.
Result<std::optional<Tensor>> constant_value(const Program& program, const Stage& stage);

/// Computes stages that depend on constants with values alone, once; they become constants. Results
/// stay stages.
Result<Program> fold_constants(const Program& program);

/// Joins stages that only move elements with such stages that they read, unless indices would
/// become unreasonably long; where they undo each other their readers read the original.
Program cancel_layouts(const Program& program);

/// Makes a stage of the last index of what a stage loads, where that is computed from what is
/// loaded along the innermost axis; returns its name.
///
///   result y[i:4, j:64] = x[i, max(min(int32(p[i, j]), 31), 0)];
///
/// becomes
///
///   stage y_at[i:4, j:64] = max(min(int32(p[i, j]), 31), 0);
///   result y[i:4, j:64] = x[i, y_at[i, j]];
std::optional<std::string> stage_index(Program& program, std::string_view stage);

/// Removes stages and constants that nothing reads, and schedule steps of missing
/// stages.
Program without_unused(const Program& program);

}  // namespace collage::tensor_program
