#include "backend/native/symbolic/symbolic_kernel.h"

#include "backend/native/called_program.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/symbolic/symbolic_product.h"
#include "backend/native/symbolic/symbolic_schedule.h"
#include "tensor_program/emit/collapse.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/emit/merged_rows.h"
#include "tensor_program/generalise.h"
#include "tensor_program/program_key.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

constexpr char kRows[] = "symbolic";

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
  if (is_product) group = TRY(analyse_group(tensor_program::collapse_dims(flat, 0)));
  if ((group.kind != KernelGroup::Kind::kGeneric && !is_product) || group.results.size() != 1)
    return unsupported("native: a template over symbols");
  // Behind it are views alone, of the same bytes.
  const Function function = make_function(group.function->params, group.results[0]);
  const tp::Program emitted = TRY(tp::emit(function, {group.row_stages, true}));
  TRY(check_array_sizes(emitted));
  tp::Generalised general = TRY(tp::generalise(tp::merged_rows(emitted)).with_context("native"));
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
  return fmt::format("{} {}", kRows, tile.to_string());
}

Result<tp::Program> scheduled(General& general, std::string_view variant, int threads) {
  if (!general.product && variant == kRows)
    return scheduled_over_symbols(std::move(general.program), threads).with_context("native");
  if (general.product)
    for (const ProductTile& tile : tiles_of(general))
      if (name_of(tile) == variant)
        return scheduled_product(std::move(general.program), *general.product, tile, threads)
            .with_context("native");
  return internal_error("native: no schedule '{}'", variant);
}

}  // namespace

std::vector<SymbolicVariant> symbolic_variants(const Function& flat, int threads) {
  const Result<General> general = general_program(flat);
  if (!general.ok()) return {};
  std::vector<SymbolicVariant> variants;
  if (general->product) {
    const MatmulProblem problem{{{}, 1, general->product->columns, general->product->terms}};
    for (const ProductTile& tile : tiles_of(*general))
      variants.push_back({name_of(tile), weight_form(problem, false)});
  } else if (scheduled_over_symbols(general->program, threads).ok()) {
    variants.push_back({kRows, kPlainWeights});
  }
  return variants;
}

Result<OverSymbols> program_over_symbols(const Function& flat, std::string_view variant,
                                         int threads) {
  General general = TRY(general_program(flat));
  const tp::Program program = TRY(scheduled(general, variant, threads));
  tp::ProgramKey key;
  key.add(program);
  return OverSymbols{key.text(), TRY(tp::with_values(program, general.values))};
}

}  // namespace collage::native
