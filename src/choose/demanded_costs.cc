#include "choose/demanded_costs.h"

#include <algorithm>
#include <set>

#include "base/stopwatch.h"

namespace collage {

DemandedCosts::DemandedCosts(const MeasuredCosts& costs, const VariantDemands& demands,
                             const std::vector<CostedCandidate>& candidates, Progress* progress)
    : MeasuredCosts(costs), demands_(demands), progress_(progress) {
  std::set<const TargetCosts*> all;
  for (const CostedCandidate& candidate : candidates)
    if (!candidate.is_host() && candidate.works() && all.insert(candidate.costs.get()).second)
      unknown_ += !candidate.has_cost();
  all_ = all.size();
}

DemandedCosts::~DemandedCosts() {
  if (progress_ != nullptr && asked_ > 0) progress_->finish("measuring");
}

Result<std::vector<TargetCosts>> DemandedCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  if (progress_ != nullptr && asked_ == 0)
    progress_->begin("measuring at most", unknown_, all_,
                     static_cast<double>(unknown_) * store().seconds_per_measurement());
  const Stopwatch watch;
  constexpr size_t kSaid = 16;  // asked for between two words of progress
  std::vector<TargetCosts> answers;
  for (size_t first = 0; first < questions.size(); first += kSaid) {
    const auto begin = questions.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kSaid, questions.size() - first));
    for (TargetCosts& costs : TRY(MeasuredCosts::kernel_costs({begin, end}))) {
      leave_out(questions[answers.size()].function, costs, demands_);
      ++asked_;
      failed_ += !costs.refusal.empty();
      answers.push_back(std::move(costs));
    }
    if (progress_ != nullptr)
      progress_->update("measuring", asked_, std::max(asked_, unknown_), 0, failed_);
  }
  seconds_ += watch.seconds();
  return answers;
}

}  // namespace collage
