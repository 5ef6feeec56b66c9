#include "backend/amx/amx_backend.h"

#include <algorithm>

#include "backend/amx/attention_rule.h"
#include "backend/amx/kernels/attention_kernel.h"
#include "backend/amx/kernels/loaders.h"
#include "backend/amx/kernels/tiles.h"
#include "backend/amx/peak.h"
#include "backend/amx/read_attention.h"
#include "backend/contraction/contraction_offer.h"
#include "backend/contraction/kernels/processor.h"
#include "backend/fingerprint.h"
#include "ir/visitor.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace amx {
namespace {

using contraction::matrix_unit;

bool has_attention(const Function& function) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Expr& node) { return as_op(node, "nn.attention") != nullptr; });
}

Variant attention_variant(Parts parts, const Function& function) {
  return contraction::plain_variant(fmt::format("attention {}", parts.name()), parts, function);
}

/// Attention computes both operands, and cuts them alike.
bool has_attention_of(const Parts& parts) { return parts.left == parts.right; }

/// What begins a schedule: which of kAllParts. A contraction's goes on after a space.
std::string schedule_of(size_t parts, const std::string& rest) {
  return std::to_string(parts) + (rest.empty() ? "" : " " + rest);
}

std::vector<KernelRow> kernel_rows() {
  std::vector<KernelRow> rows;
  for (const Parts& parts : kAllParts) {
    KernelRow row = contraction::row_of(parts);
    row.computes =
        has_attention_of(parts) ? "products, convolutions, attention" : "products, convolutions";
    row.isa = "AMX";
    rows.push_back(std::move(row));
  }
  return rows;
}

class AmxBackend : public Backend {
 public:
  AmxBackend()
      : Backend("amx", [] {
          const bool has = matrix_unit().ok();
          return BackendTraits{.version = source_fingerprint("amx"),
                               .priority = 25,
                               .compiles_fast = true,
                               .lowers = has,
                               .vector_speedup = 12,
                               .peak_probe = has ? std::optional(PeakProbe{multiply_tiles_at_rest,
                                                                           2 * kPeakRoundProducts})
                                                 : std::nullopt,
                               .options = {{"parts", {"2", "3"}}},
                               .kernels = kernel_rows()};
        }) {}
  Status available() const override { return matrix_unit(); }

  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<UnionPartitionRule>(
        name(), std::vector<PartitionRulePtr>{contraction::make_contraction_rule(name()),
                                              make_attention_rule()});
  }

  // `amx -parts=3` offers sums of six products instead of three: the accuracy of float32.
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions& options) const override {
    const auto given = target.options.find("parts");
    const Parts most =
        given != target.options.end() && given->second == "3" ? Parts{3, 3} : Parts{2, 2};
    std::vector<Parts> offered{most};
    if (options.rounding == RoundingLimit::kAny) offered = {most, {1, 1}, {1, 2}};
    return variants_of(function, offered, options).with_context(name());
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    return kernel_of(function, variant, options).with_context(name());
  }

 private:
  static Result<std::vector<Variant>> variants_of(const Function& function,
                                                  const std::vector<Parts>& offered,
                                                  const CompileOptions& options) {
    const Function flat = TRY(inline_calls(function));
    const bool attends = has_attention(flat);
    if (attends) TRY(read_attention(flat));
    std::vector<Variant> list;
    for (const Parts& parts : offered) {
      const auto place = static_cast<size_t>(
          std::find(std::begin(kAllParts), std::end(kAllParts), parts) - std::begin(kAllParts));
      std::vector<Variant> some;
      if (!attends)
        some = TRY(contraction::contraction_variants(function, flat, parts, options.threads));
      else if (has_attention_of(parts))
        some.push_back(attention_variant(parts, function));
      for (Variant& variant : some) {
        variant.schedule = schedule_of(place, variant.schedule);
        list.push_back(std::move(variant));
      }
    }
    return list;
  }
  static Result<std::unique_ptr<Kernel>> kernel_of(const Function& function, const Variant& variant,
                                                   const CompileOptions& options) {
    TRY(matrix_unit());  // asks for it
    const Function flat = TRY(inline_calls(function));
    const std::string_view schedule = variant.schedule;
    const size_t space = std::min(schedule.find(' '), schedule.size());
    const std::string_view rest = schedule.substr(std::min(space + 1, schedule.size()));
    // One that is none is refused below.
    const Parts parts =
        kAllParts[position_in(schedule.substr(0, space), std::size(kAllParts)).value_or(0)];
    if (has_attention(flat)) {
      Attention attention = TRY(read_attention(flat));
      if (schedule.empty() || !has_attention_of(parts) ||
          !(variant == attention_variant(parts, function)))
        return unsupported("no variant {}", variant.to_string());
      return make_attention_kernel(std::move(attention), parts.left, options.threads);
    }
    return contraction::compile_contraction(function, flat, variant, parts, rest,
                                            tile_micro_kernel(), options.threads);
  }
};

}  // namespace
}  // namespace amx

std::unique_ptr<Backend> make_amx_backend() {
  amx::register_loaders();
  return std::make_unique<amx::AmxBackend>();
}

}  // namespace collage
