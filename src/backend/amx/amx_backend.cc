#include "backend/amx/amx_backend.h"

#include <algorithm>

#include "backend/amx/attention_rule.h"
#include "backend/amx/peak.h"
#include "backend/amx/read_attention.h"
#include "backend/contraction/contraction_offer.h"
#include "backend/fingerprint.h"
#include "ir/visitor.h"
#include "kernels/amx/attention_kernel.h"
#include "kernels/amx/loaders.h"
#include "kernels/amx/tiles.h"
#include "kernels/contraction/processor.h"
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

class AmxBackend : public Backend {
 public:
  std::string name() const override { return "amx"; }
  std::string version() const override { return source_fingerprint(name()); }
  Status available() const override { return matrix_unit(); }
  int priority() const override { return 25; }
  double vector_speedup() const override { return 12; }

  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<UnionPartitionRule>(
        name(), std::vector<PartitionRulePtr>{contraction::make_contraction_rule(name()),
                                              make_attention_rule()});
  }

  // `amx -parts=3` offers sums of six products instead of three: the accuracy of float32.
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions& options) const override {
    return variants_of(function, {parts_of(target)}, options).with_context(name());
  }

  std::string spreads_nan() const override { return "sums of products of parts"; }

  std::optional<PeakProbe> peak_probe(const Target&) const override {
    if (!matrix_unit().ok()) return std::nullopt;
    return PeakProbe{multiply_tiles_at_rest, 2 * kPeakRoundProducts};
  }

  bool lowers() const override { return matrix_unit().ok(); }
  Result<std::vector<Variant>> lowered_variants(const Function& function, const Target&,
                                                const CompileOptions& options) const override {
    return variants_of(function, {{1, 1}, {1, 2}}, options).with_context(name());
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    return kernel_of(function, variant, options).with_context(name());
  }

 private:
  static Parts parts_of(const Target& target) {
    const auto given = target.options.find("parts");
    return given != target.options.end() && given->second == "3" ? Parts{3, 3} : Parts{2, 2};
  }
  static Result<std::vector<Variant>> variants_of(const Function& function,
                                                  const std::vector<Parts>& offered,
                                                  const CompileOptions& options) {
    const Function flat = TRY(inline_calls(function));
    std::vector<Variant> list;
    if (has_attention(flat)) {
      TRY(read_attention(flat));
      for (const Parts& parts : offered)
        if (has_attention_of(parts)) list.push_back(attention_variant(parts, function));
      return list;
    }
    return contraction::contraction_variants(function, flat, offered, options.threads);
  }
  static Result<std::unique_ptr<Kernel>> kernel_of(const Function& function, const Variant& variant,
                                                   const CompileOptions& options) {
    TRY(matrix_unit());  // asks for it
    const Function flat = TRY(inline_calls(function));
    if (has_attention(flat)) {
      Attention attention = TRY(read_attention(flat));
      for (const Parts& parts : kAllParts)
        if (has_attention_of(parts) && variant == attention_variant(parts, function))
          return make_attention_kernel(std::move(attention), parts.left, options.threads);
      return unsupported("no variant {}", variant.to_string());
    }
    return contraction::compile_contraction(function, flat, variant, kAllParts, tile_micro_kernel(),
                                            options.threads);
  }
};

}  // namespace
}  // namespace amx

std::unique_ptr<Backend> make_amx_backend() {
  amx::register_loaders();
  return std::make_unique<amx::AmxBackend>();
}

}  // namespace collage
