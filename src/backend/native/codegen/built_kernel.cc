#include "backend/native/codegen/built_kernel.h"

#include <algorithm>

#include "backend/native/codegen/horizontal_reductions.h"
#include "backend/native/codegen/real_limits.h"
#include "backend/native/codegen/tile_calls.h"
#include "backend/native/codegen/weights_ahead.h"
#include "backend/native/integers/pair_products.h"
#include "tensor_program/in_place.h"

namespace collage::native {

namespace tp = tensor_program;

/// Parameters that the code never reads still take part in the variant, not in the pipeline.
void finish(BuiltKernel& built, Translator& translator, const std::vector<Halide::Func>& outputs) {
  translator.apply_schedule();
  built.bindings = std::move(translator.bindings());
  built.calls_library = translator.calls_library() || translator.calls_intrinsics();
  for (size_t i = 0; i < outputs.size(); ++i) {
    fix_dense(outputs[i].output_buffer(), built.result_extents[i]);
    built.result_types.push_back(outputs[i].types()[0]);
  }
  built.pipeline = Halide::Pipeline(outputs);
  for (const Binding& binding : built.bindings) {
    if (binding.ahead) read_ahead(built.pipeline, binding.buffer.param().name());
  }
  if (translator.calls_intrinsics()) call_tiles(built.pipeline);
  if (translator.multiplies_pairs()) lower_pair_products(built.pipeline);
  reduce_horizontally(built.pipeline);
  lower_limits(built.pipeline);
}

BuiltKernel translated(const ScheduledProgram& scheduled) {
  const tp::Program& program = scheduled.program;
  Translator translator(program, scheduled.whole);
  BuiltKernel built;
  built.checked = scheduled.checked;
  built.key = scheduled.key;
  if (built.key.empty()) {
    tp::ProgramKey key;
    key.add(program);
    built.key = key.text() + (scheduled.reads_ahead ? " ahead" : "");
  }
  std::vector<Halide::Func> outputs;
  std::vector<std::vector<HExpr>> extents;
  for (const std::string& name : program.results()) {
    outputs.push_back(translator.func(name));
    const tp::Stage& result = *program.find_stage(name);
    std::vector<HExpr>& own = extents.emplace_back();
    for (size_t d = result.axes.size(); d-- > 0;)
      own.push_back(translator.extent(result.axes[d].size, result.axes[d].extent));
    const Shape shape = result.shape();
    built.result_extents.push_back({shape.rbegin(), shape.rend()});
  }
  for (const auto& [param, result] : tp::in_place_results(program)) {
    // An argument may stand for several parameters.
    const auto same = [at = param->param](const auto& buffer) { return buffer.param == at; };
    if (std::count_if(program.buffers.begin(), program.buffers.end(), same) == 1)
      built.updates.push_back({static_cast<size_t>(param->param), result});
  }
  for (Binding& binding : translator.bindings())
    binding.ahead =
        scheduled.reads_ahead && static_cast<int64_t>(binding.constant.bytes()) >= kLeastBytesAhead;
  built.symbols = translator.symbols();
  for (const tp::Symbol& symbol : program.symbols)
    built.symbol_values.push_back(static_cast<int32_t>(symbol.value));
  finish(built, translator, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) fix_dense(outputs[i].output_buffer(), extents[i]);
  return built;
}

}  // namespace collage::native
