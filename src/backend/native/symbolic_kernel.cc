#include "backend/native/symbolic_kernel.h"

#include "backend/native/called_program.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/merged_rows.h"
#include "backend/native/symbolic_schedule.h"
#include "tensor_program/emit.h"
#include "tensor_program/generalise.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

/// Its text, whatever the shapes that its symbols stand for.
struct Compiled {
  std::string text;
  tp::Program program;
};

Result<Compiled> compiled_program(const Function& flat, int threads) {
  if (computes_stages(flat)) return unsupported("native: a user's program over symbols");
  const KernelGroup group = TRY(analyse_group(flat));
  if (group.kind != KernelGroup::Kind::kGeneric || group.results.size() != 1)
    return unsupported("native: a template over symbols");
  // Behind it are views alone, of the same bytes.
  const Function function = make_function(flat->params, group.results[0]);
  const tp::Program emitted = TRY(tp::emit(function, {group.row_stages, true}));
  TRY(check_array_sizes(emitted));
  tp::Generalised general = TRY(tp::generalise(merged_rows(emitted)).with_context("native"));
  const tp::Program scheduled =
      TRY(scheduled_over_symbols(std::move(general.program), threads).with_context("native"));
  return Compiled{scheduled.to_string(), TRY(tp::with_values(scheduled, general.values))};
}

}  // namespace

Result<tp::Program> program_over_symbols(const Function& flat, int threads) {
  return TRY(compiled_program(flat, threads)).program;
}

Result<BuiltKernel> build_symbolic(const Function& flat, int threads) {
  const Compiled compiled = TRY(compiled_program(flat, threads));
  Translator translator(compiled.program);
  const std::string name = compiled.program.results()[0];
  const tp::Stage& result = *compiled.program.find_stage(name);
  Halide::Func func = translator.func(name);
  translator.apply_schedule();
  BuiltKernel built;
  built.program = compiled.text;
  built.bindings = std::move(translator.bindings());
  built.symbols = translator.symbols();
  for (const tp::Symbol& symbol : compiled.program.symbols)
    built.symbol_values.push_back(static_cast<int32_t>(symbol.value));
  std::vector<HExpr> extents;
  std::vector<int64_t>& numbers = built.result_extents.emplace_back();
  for (size_t d = result.axes.size(); d-- > 0;) {
    extents.push_back(translator.extent(result.axes[d].size, result.axes[d].extent));
    numbers.push_back(result.axes[d].extent);
  }
  fix_dense(func.output_buffer(), extents);
  built.result_types.push_back(func.types()[0]);
  built.pipeline = Halide::Pipeline(func);
  return built;
}

}  // namespace collage::native
