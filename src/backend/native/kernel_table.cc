#include "backend/native/kernel_table.h"

#include <algorithm>
#include <iterator>

#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/program_kernels.h"
#include "base/check.h"

namespace collage::native {

namespace {

constexpr char kRegisters[] = "tile of rows and vectors in registers, rows of a task";

std::string named(std::string_view name) { return std::string(name); }

}  // namespace

const std::vector<KernelKind>& kernel_table() {
  // Where nothing is measured the first variant is taken.
  static const std::vector<KernelKind> table = {
      {{.name = named(kDots),
        .computes = "products and convolutions of bytes",
        .isa = "AVX2, or VNNI",
        .tile = "instruction, rows of a task"},
       dot_variants,
       stage_kernel,
       true},
      {{.name = "upsampled",
        .computes = "3x3 convolutions of images enlarged twice",
        .tile = kRegisters},
       convolution_variants,
       convolution_kernel},
      {{.name = "winograd2",
        .computes = "3x3 convolutions of stride 1",
        .tile = kRegisters,
        .rounding = rounding::kWinograd2,
        .work = Work::of_winograd(2),
        .spreads_nan = true},
       convolution_variants,
       convolution_kernel},
      {{.name = "winograd4",
        .computes = "3x3 convolutions of stride 1",
        .tile = kRegisters,
        .rounding = rounding::kWinograd4,
        .work = Work::of_winograd(4),
        .spreads_nan = true},
       convolution_variants,
       convolution_kernel},
      {{.name = "depthwise", .computes = "depthwise convolutions", .tile = kRegisters},
       convolution_variants,
       convolution_kernel},
      {{.name = "convolution", .computes = "convolutions", .tile = kRegisters},
       convolution_variants,
       convolution_kernel},
      {{.name = "joined groups",
        .computes = "convolutions of small groups",
        .tile = kRegisters,
        .spreads_nan = true},
       convolution_variants,
       convolution_kernel},
      {{.name = named(kProducts), .computes = "matrix products", .tile = kRegisters},
       product_variants,
       product_kernel},
      {{.name = named(kAttention),
        .computes = "attention",
        .spreads_nan = true},  // to other rows of a tile
       attention_variants,
       attention_kernel},
      {{.name = named(kGeneric),
        .computes = "everything else, several operators at once",
        .tile = "row by row, or result by result"},
       generic_variants,
       generic_kernel},
      {{.name = named(kStages),
        .computes = "users' programs of several stages; what a search finds for everything else",
        .tile = "rows of a task, tile in registers, copies in panels"},
       stage_variants,
       stage_kernel},
      {{.name = named(kProgram),
        .computes = "users' programs",
        .tile = "the schedule that it brings"},
       stage_variants,
       program_kernel},
      {{.name = named(kHalfProducts),
        .computes = "products of few rows with large constant weights",
        .tile = kRegisters,
        .rounding = rounding::kBFloat16Factors,
        .work = {.constants = 0.5}},
       half_product_variants,
       product_kernel},
      {{.name = named(kIntegers),
        .computes = "products with constant weights, by 16-bit integers",
        .isa = "VNNI without a matrix unit",
        .tile = "rows of a task",
        .rounding = {.fixed_point = 0x1p-11},  // a variant says its own
        .work = {.unit = "int16", .constants = 0.5},
        .spreads_nan = true},
       integer_variants,
       integer_kernel},
      {{.name = named(kSymbolic),
        .computes = "rows and products of any number of rows (native -symbolic=only)",
        .tile = "tile in registers"},
       variants_over_symbols,
       symbolic_kernel,
       false,
       true},
  };
  return table;
}

Result<Problem> problem_of(const Function& function, int threads) {
  const Function quantised = TRY(inline_calls(function));
  const Function flat = TRY(with_real_products(quantised));
  return Problem{quantised, flat, analyse_group(flat), computes_stages(flat), threads};
}

Result<std::vector<Variant>> kernel_variants(const Function& function, RoundingLimit limit,
                                             bool over_symbols, int threads) {
  const Problem problem = TRY(problem_of(function, threads));
  if (!problem.stages) TRY(problem.group);
  const auto list = [&](bool symbols) -> Result<std::vector<Variant>> {
    std::vector<Variant> variants;
    const KernelKind* before = nullptr;
    for (const KernelKind& kind : kernel_table()) {
      const bool again = before != nullptr && before->variants == kind.variants;
      before = &kind;
      const bool lowers = kind.row.rounding.limit() == RoundingLimit::kAny;
      if (again || kind.over_symbols != symbols || (lowers && limit != RoundingLimit::kAny))
        continue;
      std::vector<Variant> some = TRY(kind.variants(problem));
      std::move(some.begin(), some.end(), std::back_inserter(variants));
    }
    return variants;
  };
  std::vector<Variant> variants;
  if (over_symbols) variants = TRY(list(true));
  if (variants.empty()) variants = TRY(list(false));
  if (variants.empty()) return unsupported("native: no kernel for this");
  return variants;
}

std::string schedule_of(std::string_view row, std::string_view rest) {
  return fmt::format("{}: {}", row, rest);
}

std::pair<const KernelKind*, std::string_view> find_kind(std::string_view schedule) {
  const size_t colon = schedule.find(": ");
  const std::string_view name = schedule.substr(0, colon);
  for (const KernelKind& kind : kernel_table())
    if (colon != std::string_view::npos && kind.row.name == name)
      return {&kind, schedule.substr(colon + 2)};
  return {nullptr, {}};
}

const KernelRow& kernel_row(std::string_view name) {
  const auto& table = kernel_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const KernelKind& kind) { return kind.row.name == name; });
  COLLAGE_CHECK(found != table.end(), "no row {}", name);
  return found->row;
}

}  // namespace collage::native
