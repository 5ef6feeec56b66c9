#include "compiler/compile_control.h"

#include <unordered_map>

#include "backend/reference/kernels/control_kernel.h"
#include "backend/targets/external_mods.h"
#include "ops/control.h"

namespace collage {

namespace {

// What is said of the whole program's inputs, results and memory says nothing of a part.
ProgramOptions options_of_part(ProgramOptions options, int threads) {
  options.check_inputs.clear();
  options.memory.clear();
  options.max_error = 0;
  if (options.budget_seconds) options.budget_seconds = *options.budget_seconds / 2;
  options.keep_module = false;
  options.threads = threads;
  return options;
}

Result<std::shared_ptr<const Plan>> plan_of(const Function& function, const ProgramOptions& options,
                                            Progress* progress) {
  Model part = model_of(Module(function));
  part.impl().is_part = true;
  return TRY(compile_model(part, options, progress)).impl().plan;
}

// Kernels are given aligned operands.
Tensor aligned(const Tensor& value) {
  return reinterpret_cast<uintptr_t>(value.raw()) % kArenaAlignment == 0 ? value : value.clone();
}

}  // namespace

Result<std::shared_ptr<Kernel>> compile_control(const Function& function,
                                                const ProgramOptions& options, int threads,
                                                Progress* progress) {
  const auto& call = *as<CallNode>(function->body);
  const ProgramOptions inside = options_of_part(options, threads);
  std::unordered_map<const ExprNode*, size_t> inputs;
  for (const Expr& param : function->params) inputs[param.get()] = inputs.size();
  ControlSpec spec;
  std::vector<std::shared_ptr<const Plan>> plans;
  const auto mod = tensor_program::external_mod_call(call);
  for (const Expr& arg : mod ? mod->args : call.args) {
    if (const auto* constant = as<ConstantNode>(arg)) {
      spec.operands.push_back({aligned(constant->value), 0});
    } else if (arg->kind() == ExprKind::kFunction) {
      plans.push_back(
          TRY(plan_of(std::static_pointer_cast<const FunctionNode>(arg), inside, progress)
                  .with_context(call.op->name)));
    } else {
      spec.operands.push_back({Tensor(), inputs.at(arg.get())});
    }
  }
  if (mod) {
    spec.kind = ControlSpec::Kind::kCall;
    plans.push_back(TRY(load_external_mod(*mod, threads)));
  }
  if (call.op->name == kLoopOp) {
    const LoopForm form = loop_form(call);
    spec.kind = ControlSpec::Kind::kLoop;
    spec.states = form.states;
    spec.scanned = form.scanned;
    spec.rows = form.rows;
    const bool certain = has_certain_end(call);
    spec.most_checked = certain ? 0 : kMostCheckedIterations;
  }
  return make_control_kernel(std::move(spec), std::move(plans), threads);
}

}  // namespace collage
