// Tensor programs in graph functions. A call of the operator "tensor_program" computes what the
// program in its attribute does, filling results that the caller allocates:
//
//   tensor_program(%x, %w, program="program { param A: float32[4, 8]; … }", name="scale")
//
// Arguments are the program's parameters in order, the value its result, or a tuple of them.
// Modules define such programs by name (module_programs.h); the name stays with the call for people
// to read, and says nothing about what is computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

inline constexpr const char* kCallOp = "tensor_program";

/// This operator and external_call.h's.
void register_call_ops();

/// What a call of the operator computes: its program, verified when the call was typed, and its
/// accesses proven to stay inside its arrays (accesses.h).
Result<Program> program_of_call(const CallNode& call);
/// The attributes of a call of the program, with all values of its constants; `name` may be empty.
Attrs call_attrs(const Program& program, const std::string& name);
/// A call of the program.
Result<Expr> call_of_program(const Program& program, std::vector<Expr> args,
                             const std::string& name, const std::string& origin);

/// The call's arguments by the names of the program's parameters.
std::map<std::string, Expr> arguments_of(const CallNode& call, const Program& program);
/// A call of the program, whose parameters get the arguments of their names. Fails where the
/// program may not be called (its accesses are no longer proven, say).
Result<Expr> call_program(const Program& program, const std::map<std::string, Expr>& arguments,
                          const std::string& origin);

/// What reports call it: an operator by that, a named program and a function that has a
/// "global_symbol" by their names, another function "call".
std::string name_of_call(const CallNode& call);

/// The program's type as a graph function's.
Type function_type(const Program& program);

/// Whether graphs may call the verified program, whose text comes from users: its constants have
/// values, its accesses stay inside its arrays. `where` gets the name of what does not.
Status check_callable(const Program& program, std::string* where = nullptr);

}  // namespace collage::tensor_program
