#include "choose/tuning_task.h"

#include <algorithm>

#include "ir/text_printer.h"
#include "ir/visitor.h"

namespace collage {

Result<TaskExtraction::Added> TaskExtraction::add(const CandidatePartition& candidate) {
  const size_t number = added_++;
  auto [it, inserted] = by_nodes_.try_emplace(candidate.sub_graph.inside());
  if (inserted) {
    Function function = TRY(inline_calls(candidate.sub_graph.extract(graph_)));
    auto [task, is_new] = by_text_.try_emplace(canonical_text(function), tasks_.size());
    if (is_new) tasks_.push_back({function, task->first, {}, {}, 0});
    it->second = {std::move(function), task->second};
  }
  const auto& [function, index] = it->second;
  if (candidate.spec->is_host) return Added{function, index, false};
  TuningTask& task = tasks_[index];
  auto known = std::find(task.targets.begin(), task.targets.end(), candidate.spec->target);
  const auto t = static_cast<size_t>(known - task.targets.begin());
  const bool new_target = known == task.targets.end();
  if (new_target) {
    task.targets.push_back(candidate.spec->target);
    task.candidates.emplace_back();
  }
  task.candidates[t].push_back(number);
  return Added{function, index, new_target};
}

}  // namespace collage
