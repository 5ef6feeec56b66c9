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

/// Registers this operator and external_call.h's.
void register_call_ops();

/// Returns the program of a call, which was verified when the call was typed and whose accesses are
/// proven to stay inside its arrays (accesses.h).
Result<Program> program_of_call(const CallNode& call);
/// Returns the attributes of a call, with all values of constants; `name` may be empty.
Attrs call_attrs(const Program& program, const std::string& name);
/// Calls the program.
Result<Expr> call_of_program(const Program& program, std::vector<Expr> args,
                             const std::string& name, const std::string& origin);

/// Returns the call's arguments by the names of the program's parameters.
std::map<std::string, Expr> arguments_of(const CallNode& call, const Program& program);
/// Calls the program with arguments by the names of its parameters. Fails if it may not be called
/// (its accesses are no longer proven, say).
Result<Expr> call_program(const Program& program, const std::map<std::string, Expr>& arguments,
                          const std::string& origin);

/// Returns the name of a call in reports: the operator's, a named program's, that of a function
/// with a "global_symbol", else "call".
std::string name_of_call(const CallNode& call);

/// Returns the program's type as a graph function's.
Type function_type(const Program& program);

/// Checks that graphs may call the verified program, whose text comes from users: its constants
/// have values, its accesses stay inside its arrays. `where` gets the name of what fails.
Status check_callable(const Program& program, std::string* where = nullptr);

}  // namespace collage::tensor_program
