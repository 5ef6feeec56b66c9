#include "select/culprits.h"

#include <map>

#include "select/layerwise.h"

namespace collage {

Result<std::vector<std::string>> find_culprits(const NamedCover& cover,
                                               const std::vector<CostedCandidate>& candidates,
                                               const LoweredPlan& lowered, Judge& judge,
                                               const CompileOptions& options) {
  std::map<std::string, StepMeaning> meanings;
  std::map<std::string, std::string> texts;  // by step
  std::vector<std::string> relaxed;
  for (size_t k = 0; k < cover.kernels.size(); ++k) {
    const CostedCandidate& candidate = candidates[cover.kernels[k].candidate];
    const Variant& variant = cover.kernels[k].row().variant;
    const std::string& step = lowered.kernel_names[k];
    meanings[step] = {lowered.functions[k], variant.effective_rounding()};
    texts[step] = kernel_text(candidate.partition, variant);
    if (variant.relaxed) relaxed.push_back(texts[step]);
  }
  const auto wrong_on = [&](std::span<const JudgedInputs> all) -> Result<std::string> {
    for (const JudgedInputs& judged : all) {
      const LayerwiseResult result =
          TRY(verify_layerwise(*lowered.plan, meanings, judged.inputs, options));
      if (result.first_wrong) return texts[result.first_wrong->step];
    }
    return std::string();
  };
  std::string culprit = TRY(wrong_on(TRY(judge.seeded())));
  for (size_t i = 0; i < judge.given_count() && culprit.empty(); ++i)
    culprit = TRY(wrong_on(TRY(judge.given(i))));
  if (!culprit.empty()) return std::vector<std::string>{culprit};
  return relaxed;
}

}  // namespace collage
