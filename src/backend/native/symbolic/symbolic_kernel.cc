#include "backend/native/symbolic/symbolic_kernel.h"

#include "backend/native/called_program.h"
#include "backend/native/integers/real_limits.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/collapse.h"
#include "backend/native/stages/horizontal_reductions.h"
#include "backend/native/symbolic/symbolic_product.h"
#include "backend/native/symbolic/symbolic_schedule.h"
#include "backend/native/templates/merged_rows.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/generalise.h"
#include "tensor_program/program_key.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

/// The function over symbols, without a schedule.
struct General {
  tp::Program program;
  tp::Symbols values;
  std::optional<RowProduct> product;  // where it is one
};

Result<General> general_program(const Function& flat) {
  if (computes_stages(flat)) return unsupported("native: a user's program over symbols");
  KernelGroup group = TRY(analyse_group(flat));
  const bool is_product = group.kind == KernelGroup::Kind::kMatmul;
  if (is_product) group = TRY(analyse_group(collapse_dims(flat, 0)));
  if ((group.kind != KernelGroup::Kind::kGeneric && !is_product) || group.results.size() != 1)
    return unsupported("native: a template over symbols");
  // Behind it are views alone, of the same bytes.
  const Function function = make_function(group.function->params, group.results[0]);
  const tp::Program emitted = TRY(tp::emit(function, {group.row_stages, true}));
  TRY(check_array_sizes(emitted));
  tp::Generalised general = TRY(tp::generalise(merged_rows(emitted)).with_context("native"));
  General result{std::move(general.program), std::move(general.values), {}};
  if (is_product) result.product = TRY(row_product(result.program).with_context("native"));
  return result;
}

/// The tiles of a product, best guess first.
std::vector<ProductTile> tiles_of(const General& general) {
  // Its one symbol.
  return product_tiles(*general.product, general.values.begin()->second, has_avx512());
}

std::string name_of(const ProductTile& tile) {
  return fmt::format("{} {}", kSymbolic, tile.to_string());
}

Result<tp::Program> scheduled(General& general, std::string_view variant, int threads) {
  if (!general.product && variant == kSymbolic)
    return scheduled_over_symbols(std::move(general.program), threads).with_context("native");
  if (general.product)
    for (const ProductTile& tile : tiles_of(general))
      if (name_of(tile) == variant)
        return scheduled_product(std::move(general.program), *general.product, tile, threads)
            .with_context("native");
  return internal_error("native: no schedule '{}'", variant);
}

/// What its code follows from, whatever the shapes that its symbols stand for.
struct Compiled {
  std::string key;
  tp::Program program;
};

Result<Compiled> compiled_program(const Function& flat, std::string_view variant, int threads) {
  General general = TRY(general_program(flat));
  const tp::Program program = TRY(scheduled(general, variant, threads));
  tp::ProgramKey key;
  key.add(program);
  return Compiled{key.text(), TRY(tp::with_values(program, general.values))};
}

}  // namespace

std::vector<Variant> symbolic_variants(const Function& flat, int threads) {
  const Result<General> general = general_program(flat);
  if (!general.ok()) return {};
  std::vector<Variant> variants;
  if (general->product) {
    const MatmulProblem problem{{{}, 1, general->product->columns, general->product->terms}};
    for (const ProductTile& tile : tiles_of(*general)) {
      variants.push_back(Variant::plain(name_of(tile), flat));
      variants.back().schedule = variants.back().name;
      variants.back().weights = weight_form(problem, false);
    }
  } else if (scheduled_over_symbols(general->program, threads).ok()) {
    variants.push_back(Variant::plain(std::string(kSymbolic), flat));
    variants.back().schedule = kSymbolic;
  }
  return variants;
}

Result<tp::Program> program_over_symbols(const Function& flat, std::string_view variant,
                                         int threads) {
  return TRY(compiled_program(flat, variant, threads)).program;
}

Result<BuiltKernel> build_symbolic(const Function& flat, std::string_view variant, int threads) {
  const Compiled compiled = TRY(compiled_program(flat, variant, threads));
  Translator translator(compiled.program);
  const std::string name = compiled.program.results()[0];
  const tp::Stage& result = *compiled.program.find_stage(name);
  Halide::Func func = translator.func(name);
  translator.apply_schedule();
  BuiltKernel built;
  built.key = compiled.key;
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
  reduce_horizontally(built.pipeline);
  lower_limits(built.pipeline);
  return built;
}

}  // namespace collage::native
