#include "compiler/program_schedules.h"

#include <algorithm>

#include "backend/backend.h"
#include "backend/program_scheduler.h"
#include "ir/target.h"
#include "ir/visitor.h"
#include "partition/stated_kernels.h"
#include "passes/fold_constants.h"
#include "passes/lift_layouts.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

constexpr const char *kVariant = "Variant", *kProgram = "program";

// With what the program stores of constants computed, if a single call is left then.
Result<Function> with_stored_layouts(const Function& function) {
  const Function lifted = TRY(fold_constants(TRY(lift_layouts(function))));
  const CallNode* call = as_op(lifted->body, tensor_program::kCallOp);
  const bool is_whole =
      call != nullptr && std::none_of(call->args.begin(), call->args.end(),
                                      [](const Expr& arg) { return as<CallNode>(arg) != nullptr; });
  return is_whole ? lifted : function;
}

// As a kernel with its program's own schedule; null where it is none, or stays as it is.
Result<Function> scheduled(const FunctionNode& kernel, int threads) {
  const CallNode* call = as_op(kernel.body, tensor_program::kCallOp);
  const std::string target = text_attr(kernel.attrs, "Target");
  const std::string variant = text_attr(kernel.attrs, kVariant);
  const std::string name = variant.substr(0, variant.find('('));
  if (call == nullptr || target.empty() || variant.empty() || name == kProgram) return Function();
  const auto* scheduler =
      dynamic_cast<const ProgramScheduler*>(find_backend(TRY(Target::parse(target)).kind));
  if (scheduler == nullptr) return Function();
  const Function function = make_function(kernel.params, kernel.body, kernel.attrs);
  const Result<std::string> program = scheduler->scheduled_program(function, name, threads);
  if (!program.ok()) return Function();
  Attrs attrs = call->attrs;
  attrs.set(kProgram, *program);
  const Expr body = TRY(make_call(tensor_program::kCallOp, call->args, attrs, call->origin()));
  Attrs stated = kernel.attrs;
  stated.set(kVariant, kProgram + variant.substr(name.size()));
  return with_stored_layouts(make_function(kernel.params, body, stated));
}

}  // namespace

Result<Module> with_program_schedules(const Module& module, int threads) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* kernel = as<FunctionNode>(rebuilt);
    if (kernel == nullptr) return rebuilt;
    const Function made = TRY(scheduled(*kernel, threads));
    return made == nullptr ? rebuilt : Expr(made);
  });
  Module made = module;
  made.functions["main"] = TRY(rewriter.rewrite(module.main()));
  return made;
}

}  // namespace collage
