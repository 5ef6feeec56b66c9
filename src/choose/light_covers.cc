// Which covers are made without measuring: by whom, and all of them.
#include <algorithm>

#include "base/log.h"
#include "base/stopwatch.h"
#include "choose/estimated_cover.h"
#include "choose/light_cover.h"
#include "ir/work.h"

namespace collage {

bool moves_nothing(const PartitionSpec& spec) {
  const std::vector<KernelRow>& kernels = find_backend(spec.target.kind)->traits().kernels;
  return !kernels.empty() && std::all_of(kernels.begin(), kernels.end(),
                                         [](const KernelRow& row) { return row.work.in_place; });
}

int light_rank(const PartitionSpec& spec, const Target* leader) {
  if (spec.is_host) return 4;
  if (leader == nullptr || spec.target == *leader) return 0;
  if (moves_nothing(spec)) return 1;
  return compiles_fast(spec) ? 2 : 3;
}

LightCovers::LightCovers(LightContext context, const std::vector<PartitionSpecPtr>& leaders)
    : context_(std::move(context)) {
  if (context_.by_estimates) estimated_ = std::make_unique<EstimatedSearch>(context_);
  for (const PartitionSpecPtr& leader : leaders)
    searches_.push_back(std::make_unique<LightSearch>(context_, leader));
}

Result<CoverSearch> LightCovers::find() {
  const Stopwatch watch;
  CoverSearch found;
  Status none;
  if (estimated_ != nullptr) {
    if (Result<CoverSearch> one = estimated_->find()) {
      if (estimated_->is_of_rows()) return one;
      found = std::move(one).value();
    } else {
      log::info("no cover by estimates: {}", one.status().message());
    }
  }
  // Where one takes that long the model is large, and so does running two.
  constexpr double kPatience = 5;
  std::vector<std::pair<Outlook, LightSearch*>> order;
  for (const auto& search : searches_) order.emplace_back(TRY(search->outlook()), search.get());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.slow_to_compile, a.first.has_many_kernels() ? a.first.kernels : 0) <
           std::pair(b.first.slow_to_compile, b.first.has_many_kernels() ? b.first.kernels : 0);
  });
  for (const auto& [outlook, search] : order) {
    if (!found.covers.empty() &&
        (watch.seconds() > kPatience || !is_worth_trying(outlook, found.covers[0])))
      continue;
    const Result<CoverSearch> one = search->find();
    if (one) {
      const auto is_same = [&](const NamedCover& other) {
        return other.text == one->covers[0].text;
      };
      if (std::none_of(found.covers.begin(), found.covers.end(), is_same))
        add_cover(one->covers[0], one->candidates, found);
    } else if (none.ok()) {
      none = one.status();
    }
  }
  if (found.covers.empty()) return none;
  return found;
}

bool LightCovers::is_worth_trying(const Outlook& outlook, const NamedCover& other) const {
  // A cover of very many kernels takes long to try, and loses to one of few by their launches
  // alone.
  constexpr size_t kTimesAsMany = 8;
  if (outlook.has_many_kernels() && outlook.kernels > kTimesAsMany * other.kernels.size())
    return false;
  // What is compiled slowly is to take no longer than half a run of a slow processor.
  constexpr double kSecondsToCompile = 0.12, kFlopsPerSecond = 1e9, kPartOfRun = 0.5;
  const DataflowGraph& graph = *context_.candidates.graph;
  double flops = 0;
  for (size_t i = 0; i < graph.size(); ++i) flops += call_flops(graph.node(i).expr);
  return kSecondsToCompile * static_cast<double>(outlook.slow_to_compile) <=
         kPartOfRun * flops / kFlopsPerSecond;
}

Result<CoverSearch> LightCovers::find_again(const PlanRow& plan) {
  again_ = std::make_unique<LightSearch>(context_, nullptr);
  return again_->find_again(plan);
}

void LightCovers::refuse(const std::string& kernel, const std::string& reason) {
  if (estimated_ != nullptr) estimated_->refuse(kernel, reason);
  for (const auto& search : searches_) search->refuse(kernel, reason);
}

LightCovers::~LightCovers() = default;

std::vector<PartitionSpecPtr> leaders_of(const Candidates& candidates) {
  std::vector<PartitionSpecPtr> leaders;
  for (const PartitionSpecPtr& spec : candidates.specs)
    if (!spec->is_host && !moves_nothing(*spec) &&
        std::any_of(candidates.found.begin(), candidates.found.end(),
                    [&](const CandidatePartition& found) { return found.spec == spec; }))
      leaders.push_back(spec);
  const auto slow = std::stable_partition(leaders.begin(), leaders.end(),
                                          [](const auto& spec) { return compiles_fast(*spec); });
  if (slow == leaders.begin()) return {nullptr};
  return leaders;
}

bool compiles_fast(const PartitionSpec& spec) {
  return moves_nothing(spec) || find_backend(spec.target.kind)->traits().compiles_fast;
}

bool is_determined(const std::vector<PartitionSpecPtr>& specs) {
  return std::count_if(specs.begin(), specs.end(),
                       [](const PartitionSpecPtr& spec) { return !spec->is_host; }) <= 1;
}

}  // namespace collage
