#include "backend/native/kernel_table.h"

#include <algorithm>
#include <iterator>

#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/kernel_variants.h"
#include "base/check.h"
#include "ir/visitor.h"

namespace collage::native {

namespace {

constexpr char kRegisters[] = "tile of rows and vectors in registers, rows of a task";
constexpr char kPictures[] = "3x3 convolutions of stride 1";

}  // namespace

// clang-format off
const std::vector<KernelKind>& kernel_table() {
  using namespace rounding;
  // Name, what it computes, instructions, in what variants differ, rounding, work, whether it spreads NaN. Where nothing is measured the first variant is taken.
  static const std::vector<KernelKind> table = {
      {{kDots, "products and convolutions of bytes", "AVX2, or VNNI", "instruction, rows of a task", {}, {.unit = "int8"}}, dot_variants, stage_kernel, true},
      {{"upsampled", "3x3 convolutions of images enlarged twice", "", kRegisters}, convolution_variants, convolution_kernel},
      {{"winograd2", kPictures, "", kRegisters, kWinograd2, Work::of_winograd(2), true}, convolution_variants, convolution_kernel},
      {{"winograd4", kPictures, "", kRegisters, kWinograd4, Work::of_winograd(4), true}, convolution_variants, convolution_kernel},
      {{"depthwise", "depthwise convolutions", "", kRegisters}, convolution_variants, convolution_kernel},
      {{"convolution", "convolutions", "", kRegisters}, convolution_variants, convolution_kernel},
      {{"joined groups", "convolutions of small groups", "", kRegisters, {}, {}, true}, convolution_variants, convolution_kernel},
      {{kProducts, "matrix products", "", kRegisters}, product_variants, product_kernel},
      {{kAttention, "attention", "", "", {}, {}, true}, attention_variants, attention_kernel},
      {{kStages, "everything else, several operators and users' programs at once", "", "rows of a task, tile in registers, copies in panels"}, stage_variants, stage_kernel},
      {{kProgram, "users' programs, as they are scheduled"}, stage_variants, program_kernel},
      {{kHalfProducts, "products of few rows with large constant weights", "", kRegisters, kBFloat16Factors, {.constants = 0.5}}, half_product_variants, product_kernel},
      // A variant says its own rounding.
      {{kIntegers, "products with constant weights, by 16-bit integers", "VNNI without a matrix unit", "rows of a task", {.fixed_point = 0x1p-11}, {.unit = "int16", .constants = 0.5}, true}, integer_variants, integer_kernel},
      {{kSymbolic, "rows and products of any number of rows (native -symbolic=only)", "", "tile in registers"}, variants_over_symbols, symbolic_kernel, false, true},
  };
  return table;
}
// clang-format on

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
