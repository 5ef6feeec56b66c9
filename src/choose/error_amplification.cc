#include "choose/error_amplification.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "ir/text_printer.h"

namespace collage {

namespace {

// Identifies what shares its costs.
std::string group_name(const CostedCandidate& candidate) {
  return sha256_hex(canonical_text(candidate.function) + candidate.costs->target).substr(0, 16);
}

// What errors of functions that nobody lowered alone are taken to grow by.
double typical(const AmplificationTable& amplifications) {
  std::vector<double> values;
  for (const auto& [name, amplification] : amplifications) values.push_back(amplification);
  return values.empty() ? 1 : median(values);
}

}  // namespace

double estimated_error(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  double sum = 0;
  for (const Cover::Kernel& kernel : cover.kernels)
    if (has_lowered_variants(candidates[kernel.candidate]))
      sum += std::pow(row_of(kernel, candidates).error, 2);
  return std::sqrt(sum);
}

bool has_lowered_variants(const CostedCandidate& candidate) {
  return candidate.costs != nullptr &&
         std::any_of(candidate.costs->variants.begin(), candidate.costs->variants.end(),
                     [](const MeasuredVariant& row) { return row.variant.lowered(); });
}

std::vector<CostedCandidate> amplified(const std::vector<CostedCandidate>& candidates,
                                       const AmplificationTable& amplifications) {
  std::vector<CostedCandidate> result = candidates;
  change_costs(candidates, result, has_lowered_variants,
               [&](const CostedCandidate& candidate, TargetCosts& costs) {
                 auto it = amplifications.find(group_name(candidate));
                 const double amplification =
                     it != amplifications.end() ? it->second : typical(amplifications);
                 for (MeasuredVariant& row : costs.variants) row.error *= amplification;
               });
  return result;
}

Result<bool> ErrorAmplification::learn(const NamedCover& cover, AmplificationTable& known) const {
  const size_t before = known.size();
  for (const Cover::Kernel& kernel : cover.kernels) {
    const CostedCandidate& lowered = candidates_[kernel.candidate];
    if (!has_lowered_variants(lowered) || !row_of(kernel, candidates_).variant.lowered() ||
        interrupted())
      continue;
    const std::string name = group_name(lowered);
    if (known.count(name)) continue;
    const std::vector<CostedCandidate> alone = only_lowering(lowered.costs.get());
    const std::vector<NamedCover> found =
        TRY(find_(alone, kInfinity, WantedCovers::kCheapest)).covers;
    const double estimate = estimated_error(found.at(0), candidates_);
    if (estimate == 0) {  // only beside others
      known[name] = typical(known);
      continue;
    }
    Result<double> error = error_of_(found[0]);
    constexpr double kFailed = 1e3;
    known[name] = error ? *error / estimate : kFailed;
    log::info("{} lowered alone: errors estimated at {:.2g} grow by {:.2g}",
              lowered.partition.sub_graph.label(), estimate, known[name]);
  }
  return known.size() > before;
}

std::vector<CostedCandidate> ErrorAmplification::only_lowering(const TargetCosts* these) const {
  constexpr double kFree = 1e-9;
  double most = 0;
  for (const MeasuredVariant& row : these->variants)
    if (measured(row.cost) != nullptr) most = std::max(most, row.error);
  std::vector<CostedCandidate> result = candidates_;
  change_costs(candidates_, result, has_lowered_variants,
               [&](const CostedCandidate& candidate, TargetCosts& costs) {
                 for (MeasuredVariant& row : costs.variants) {
                   if (!row.variant.lowered()) continue;
                   if (candidate.costs.get() != these || row.error < most / 2) {
                     row.cost = Invalid{"other kernels are lowered"};
                   } else if (measured(row.cost) != nullptr) {
                     row.cost = Measured{kFree, kFree, kFree, 1};
                   }
                 }
               });
  return result;
}

}  // namespace collage
