// Calls of external functions (external.h) in graph functions. One of a single result is a call of
// the program whose only stage calls it (call.h), so that backends compile it, update its argument
// in place and so on. A stage is one array, so an operator of its own calls a function of several
// results, one with attributes or effects (ir/effects.h); the reference runs it, over the program's
// own memory:
//
//   external_function(%x, label="mine.best", k=3)
//   external_function(%x, %0, label="mine.log", effects=True, ordered=True)
//
// `ordered`: the last argument is what the call with effects comes after.
//
// A call of an external module (ir/module.h) is an operator too, whose last argument is the
// module's code:
//
//   external_mod(%x, %w, meta[relay.Constant][0], symbol="conv_relu_lib", result="float32", …)
//
// It takes and gives dense arrays on the host. Graphs that are linked (module_programs.h) hold such
// calls, so the code goes where they go, and the module needs no list of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

inline constexpr const char* kExternalOp = "external_function";

/// And those of `after` and external modules.
void register_external_op();

/// An external function as a module declares it.
struct ExternalDeclaration {
  std::string label;
  std::vector<Type> params;
  std::optional<Type> result = {};  ///< none: its registration knows
  Attrs attrs = {};
  Ints updates = {};  ///< as its registration has them; empty: it knows
  bool has_effects = false;
};
/// Returns its type. kBadModel: no function has the label, or the parameters do not fit it.
Result<Type> external_type(const ExternalDeclaration& declaration);
/// The operator that calls it with such arguments; `name` is the module's name for it and may be
/// empty. kBadModel: its registration says otherwise.
struct OperatorWithAttrs {
  std::string op;
  std::vector<Expr> args;
  Attrs attrs;
};
Result<OperatorWithAttrs> external_operator(const ExternalDeclaration& declaration,
                                            std::vector<Expr> args, const std::string& name);
/// The call of a declaration: what external_operator made, again.
struct DeclaredCall {
  ExternalDeclaration declaration;
  std::vector<Expr> args;
};
Result<std::optional<DeclaredCall>> declared_call(const CallNode& call);

inline constexpr const char* kExternalModOp = "external_mod";

/// Runs code for the interpreter; this room cannot load it. Errors name no symbol.
using RunExternalMod = Status (*)(const Tensor& code, std::span<const Tensor> inputs,
                                  std::span<Tensor> outputs);
void set_external_mod_runner(RunExternalMod run);

/// A call of an external module.
struct ExternalModCall {
  std::string symbol;
  ExternalMod mod;
  std::vector<Expr> args;  ///< without the code
  Type result;
  std::string name = {};  ///< the module's for it; may be empty
};
Result<Expr> make_external_mod_call(ExternalModCall call, const std::string& origin);
/// The inverse; none: it is another call.
std::optional<ExternalModCall> external_mod_call(const CallNode& call);

/// Returns whether it is one call of an external module or of control flow, whose kernel runs
/// plans: only the program around it is compiled with it.
bool runs_plans(const Function& function);

/// Returns whether it calls a function that worker processes do not have, or one with effects; or
/// is control flow or an external module, which only the program around it is compiled with.
bool is_local(const Function& function);

}  // namespace collage::tensor_program
