// Calls of external functions (external.h) in graph functions. One of a single result is a call of
// the program whose only stage calls it (call.h), so that backends compile it, update its argument
// in place and so on. A stage is one array, so an operator of its own calls a function of several
// results; it gives a tuple, and the reference runs it:
//
//   external_function(%x, label="mine.best")
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

inline constexpr const char* kExternalOp = "external_function";

void register_external_op();

/// Returns the type of the function with that label for such arguments. kBadModel: there is none,
/// or they do not fit it.
Result<Type> external_type(const std::string& label, const std::vector<Type>& params);
/// The operator that calls the function with such arguments; `name` is the module's name for it and
/// may be empty.
struct OperatorWithAttrs {
  std::string op;
  Attrs attrs;
};
Result<OperatorWithAttrs> external_operator(const std::string& label, const std::vector<Expr>& args,
                                            const std::string& name);
/// Returns the label of a call of external_operator; else empty.
std::string external_label(const CallNode& call);

/// Returns whether it calls a function that worker processes do not have.
bool is_local(const Function& function);

}  // namespace collage::tensor_program
