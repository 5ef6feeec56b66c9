// Tensor programs in graph functions. A call of the operator "tensor_program" computes what the
// program in its attribute does, filling results that the caller allocates:
//
//   tensor_program(%x, %w, program="program { param A: float32[4, 8]; … }")
//
// Arguments are the program's parameters in order, the value its result, or a tuple of them. A
// module may name programs and functions of libraries (ir/module.h) and call them like functions:
//
//   abstract "tensor_program" @scale: fn (Tensor[(4), float32]) -> Tensor[(4), float32]
//     = "program { param A: float32[4]; result C[i:4] = A[i] * 2.0f; }";
//   abstract "external" @product: fn (…) -> … = "cblas_sgemm";
//
// the latter by label (external.h). `link_programs` turns such calls into calls of the operator, so
// that partitioning, measuring and backends see one thing.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/module.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

inline constexpr const char* kCallOp = "tensor_program";

void register_call_op();

/// What a call of the operator computes: its program, verified when the call was typed, and its
/// accesses proven to stay inside its arrays (accesses.h).
Result<Program> program_of_call(const CallNode& call);

/// The call's arguments by the names of the program's parameters.
std::map<std::string, Expr> arguments_of(const CallNode& call, const Program& program);
/// A call of the program, whose parameters get the arguments of their names. Fails where the
/// program may not be called (its accesses are no longer proven, say).
Result<Expr> call_program(const Program& program, const std::map<std::string, Expr>& arguments,
                          const std::string& origin);

/// A named function of a module from its text, for ParseOptions::abstract_function; or what is
/// wrong: no such kind, a program that is none, or one of another type.
Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  const Type& type,
                                                                  const std::string& text);

/// Calls of the module's programs and external functions become calls of the operator; they
/// themselves go. True where there were any.
Result<bool> link_programs(Module& module);

}  // namespace collage::tensor_program
