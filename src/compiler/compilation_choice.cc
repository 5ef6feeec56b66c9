// The stage of a compilation that chooses: among the covers that were found, and where none of them
// is right, among others.
#include <algorithm>

#include "base/log.h"
#include "compiler/compilation.h"
#include "compiler/culprits.h"

namespace collage {

namespace {

bool has_relaxed(const CostedCandidate& candidate) {
  return candidate.costs != nullptr &&
         std::any_of(candidate.costs->variants.begin(), candidate.costs->variants.end(),
                     [](const MeasuredVariant& row) {
                       return row.variant.relaxed && measured(row.cost) != nullptr;
                     });
}

}  // namespace

Result<ChosenCover> Compilation::choose_among(const std::vector<NamedCover>& covers) {
  return choose_cover(
      covers, search_.candidates, [this](const NamedCover& cover) { return lower_cover(cover); },
      *checks_, *database_, choose_, progress_);
}

Status Compilation::choose_right() {
  Result<ChosenCover> chosen = choose_among(search_.covers);
  if (chosen.status().code() == ErrorCode::kVerification && !demands_.strict_accuracy &&
      std::any_of(candidates_.begin(), candidates_.end(), has_relaxed)) {
    log::warn("algorithms with larger rounding errors are left out: {}", chosen.status().message());
    demands_.strict_accuracy = true;
    leave_out(candidates_, demands_);
    search_ = TRY(search_costed());
    chosen = choose_among(search_.covers);
  }
  chosen_ = TRY(std::move(chosen));
  return {};
}

Status Compilation::choose_lightly() {
  constexpr int kMostCulprits = 16;
  for (int attempt = 0;; ++attempt) {
    Result<ChosenCover> chosen = choose_among(search_.covers);
    if (chosen || chosen.status().code() != ErrorCode::kVerification || attempt == kMostCulprits) {
      chosen_ = TRY(std::move(chosen));
      return {};
    }
    TRY(refuse_culprits(chosen.status().message()));
    TRY(cover_lightly());
  }
}

Status Compilation::refuse_culprits(const std::string& reason) {
  const NamedCover& cover = search_.covers[0];
  const CheckedCover checked = checked_cover(cover, search_.candidates);
  const std::optional<CoverCheck> check = checks_->known(checked);
  std::vector<std::string> culprits = check ? check->culprits : std::vector<std::string>();
  if (culprits.empty()) {
    culprits =
        TRY(find_culprits(cover, search_.candidates, TRY(lower_cover(cover)), *judge_, compile_));
    checks_->remember_culprits(checked, culprits);
  }
  if (culprits.empty()) return error(ErrorCode::kVerification, "{}", reason);
  for (const std::string& culprit : culprits)
    culprits_[culprit] = "with it the whole program is wrong";
  return {};
}

void Compilation::warn_of_silent_outputs() {
  const std::optional<CoverCheck> check =
      checks_->known(checked_cover(search_.covers[chosen_.index], search_.candidates));
  if (!check) return;
  for (const auto& [output, reason] : check->silent)
    log::warn(
        "output '{}' is {} on all inputs that were tried: that it equals the reference's proves "
        "nothing",
        output, reason);
}

}  // namespace collage
