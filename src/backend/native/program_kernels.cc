#include "backend/native/called_program.h"
#include "backend/native/integers/integer_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/stage_schedule.h"
#include "backend/native/symbolic/symbolic_kernel.h"

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
  return kernel_of({.program = guarded_loops(std::move(program), true),
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
  return kernel_of({.program = std::move(*program), .checked = true}, request);
}

Result<BuiltKernel> symbolic_kernel(const Request& request) {
  OverSymbols made = TRY(program_over_symbols(request.function, request.schedule, request.threads));
  return kernel_of({std::move(made.program), std::move(made.key)}, request);
}

}  // namespace collage::native
