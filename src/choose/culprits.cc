#include "choose/culprits.h"

#include <map>

#include "choose/layerwise.h"

namespace collage {

Result<std::vector<std::string>> find_culprits(const NamedCover& cover,
                                               const std::vector<CostedCandidate>& candidates,
                                               const LoweredPlan& lowered,
                                               ReferenceCheck& reference,
                                               const CompileOptions& options) {
  std::map<std::string, StepMeaning> meanings;
  std::map<std::string, std::string> texts;  // by step
  std::vector<std::string> relaxed;
  for (size_t k = 0; k < cover.kernels.size(); ++k) {
    const CostedCandidate& candidate = candidates[cover.kernels[k].candidate];
    const Variant& variant = row_of(cover.kernels[k], candidates).variant;
    const std::string& step = lowered.kernel_names[k];
    meanings[step] = {lowered.functions[k], variant.rounding};
    texts[step] = kernel_text(candidate.partition, variant);
    if (variant.rounding.limit() == RoundingLimit::kDefault) relaxed.push_back(texts[step]);
  }
  const auto wrong_on = [&](std::span<const ReferenceInputs> all) -> Result<std::string> {
    for (const ReferenceInputs& asked : all) {
      const LayerwiseResult result =
          TRY(verify_layerwise(*lowered.plan, meanings, asked.inputs, options));
      if (result.first_wrong) return texts[result.first_wrong->step];
    }
    return std::string();
  };
  std::string culprit = TRY(wrong_on(TRY(reference.seeded())));
  for (size_t i = 0; i < reference.given_count() && culprit.empty(); ++i)
    culprit = TRY(wrong_on(TRY(reference.given(i))));
  if (!culprit.empty()) return std::vector<std::string>{culprit};
  return relaxed;
}

}  // namespace collage
