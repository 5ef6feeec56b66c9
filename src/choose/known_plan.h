// The plan that was chosen for a model, kept in the cost database: later compilations with the same
// targets and demands on the same machine begin with it, and search for nothing.
#pragma once

#include <optional>
#include <vector>

#include "choose/candidates.h"
#include "choose/choose_cover.h"

namespace collage {

PlanRow plan_of(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);

// Those of one model, targets and demands; all that is given must outlive it.
class KnownPlan {
 public:
  KnownPlan(const Candidates& candidates, const ProgramOptions& options,
            const ChooseOptions& choosing, CostDatabase& database);

  std::optional<PlanRow> find() const;
  // `complete`: everything was measured that could be in a better one. Does not keep a plan with
  // kernels that this process alone has, nor one that demands decided which the key does not hold.
  void remember(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                bool complete) const;

 private:
  const ProgramOptions& options_;
  CostDatabase& database_;
  const std::string text_, context_;
};

}  // namespace collage
