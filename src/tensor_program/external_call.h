// Calls of external functions (external.h) in graph functions. One of a single result is a call of
// the program whose only stage calls it (call.h), so that backends compile it, update its argument
// in place and so on. A stage is one array, so a function of several results is called by an
// operator of its own, which gives a tuple and which the reference runs:
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

/// The type of the function with that label for such arguments. kBadModel where there is none, or
/// they do not fit it.
Result<Type> external_type(const std::string& label, const std::vector<Type>& params);
/// The operator whose call with such arguments is one of it; `name` is what modules call it and may
/// be empty.
struct OperatorWithAttrs {
  std::string op;
  Attrs attrs;
};
Result<OperatorWithAttrs> external_operator(const std::string& label, const std::vector<Expr>& args,
                                            const std::string& name);
/// The label where the call is one of external_operator; else empty.
std::string external_label(const CallNode& call);

/// Whether a call inside is of a function that processes which measure do not have.
bool is_local(const Function& function);

}  // namespace collage::tensor_program
