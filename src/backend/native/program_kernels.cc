#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/integers/integer_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/stage_schedule.h"
#include "backend/native/symbolic/symbolic_kernel.h"
#include "tensor_program/call.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

Status dump_program(KernelDump& dump, std::string_view step, const tp::Program& program) {
  return dump.write(step, [&]() -> Result<std::string> { return program.to_string(); });
}

Result<BuiltKernel> kernel_of(const ScheduledProgram& scheduled, const Request& request) {
  TRY(dump_program(request.dump, "scheduled", scheduled.program));
  return translated(scheduled);
}

Result<BuiltKernel> stage_kernel(const Function& function, const Request& request) {
  const auto schedule = parse_stage_schedule(request.schedule);
  if (!schedule) return internal_error("native: no variant {}", request.variant.to_string());
  std::vector<ChannelLayout> layouts;
  if (request.variant.outputs[0].layout != Layout()) layouts = layouts_of(request.variant);
  tp::Program program = TRY(emitted_stages(function, std::move(layouts)));
  TRY(dump_program(request.dump, "program", program));
  tp::StagePlan plan = tp::plan_stages(std::move(program), schedule->keep);
  TRY(dump_program(request.dump, "planned", plan.program));
  program = TRY(with_schedule(std::move(plan), *schedule, request.threads));
  return kernel_of({.program = guarded_loops(std::move(program)),
                    .whole = true,
                    .checked = calls_program(function),
                    .reads_ahead = schedule->ahead},
                   request);
}

}  // namespace

Result<BuiltKernel> stage_kernel(const Request& request) {
  return stage_kernel(request.function, request);
}

Result<BuiltKernel> integer_kernel(const Request& request) {
  return stage_kernel(TRY(with_integer_products(request.function)).function, request);
}

Result<BuiltKernel> program_kernel(const Request& request) {
  std::optional<tp::Program> program = TRY(called_program(request.function));
  if (!program) return internal_error("native: no variant {}", request.variant.to_string());
  return kernel_of({.program = std::move(*program), .whole = true, .checked = true}, request);
}

Result<BuiltKernel> symbolic_kernel(const Request& request) {
  OverSymbols made = TRY(program_over_symbols(request.function, request.schedule, request.threads));
  return kernel_of({std::move(made.program), std::move(made.key)}, request);
}

Result<std::string> scheduled_program(const Function& flat, const std::string& variant,
                                      int threads) {
  const CallNode* call = as_op(flat->body, tp::kCallOp);
  const auto schedule = parse_stage_schedule(variant);
  if (call == nullptr || !schedule || schedule->ahead)
    return unsupported("native: no program has the schedule {}", variant);
  // Of parameters alone: what is stored of constants stays a stage.
  std::vector<Expr> params;
  for (const Expr& arg : call->args)
    params.push_back(make_var("a" + std::to_string(params.size()), arg->type()));
  const Expr body = TRY(make_call(tp::kCallOp, params, call->attrs));
  tp::Program program = TRY(emitted_stages(make_function(params, body)));
  program = guarded_loops(
      TRY(with_schedule(tp::plan_stages(std::move(program), schedule->keep), *schedule, threads)));
  std::vector<tp::Buffer> buffers;
  for (size_t i = 0; i < params.size(); ++i) {
    const auto buffer =
        std::find_if(program.buffers.begin(), program.buffers.end(),
                     [&](const tp::Buffer& one) { return one.param == static_cast<int>(i); });
    buffers.push_back(buffer == program.buffers.end()
                          ? tp::Buffer{fmt::format("unread{}", i), params[i]->tensor_type()}
                          : *buffer);
  }
  for (const tp::Buffer& buffer : program.buffers)
    if (buffer.is_constant) buffers.push_back(buffer);
  program.buffers = std::move(buffers);
  return tp::call_attrs(program, "").string("program");
}

}  // namespace collage::native
