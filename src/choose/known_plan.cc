#include "choose/known_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "partition/stated_kernels.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

std::string key_text(const Candidates& candidates, const ProgramOptions& options,
                     const ChooseOptions& choosing) {
  std::string text =
      fmt::format("{}\nplan of {} nodes", choosing.model_key, candidates.graph->size());
  for (const PartitionSpecPtr& spec : candidates.specs)
    text +=
        "\n" + spec->target.to_string() + (spec->rule_text.empty() ? "" : " ") + spec->rule_text;
  for (const char* attribute : {kExclude, kPin})
    text += fmt::format("\n{} {}", attribute,
                        text_attr(candidates.graph->function()->attrs, attribute));
  return text + (options.strict_accuracy ? "\nstrict" : "");
}

// Whether the key holds all that decides.
bool is_keyed(const ProgramOptions& options) {
  return options.max_error == 0 && options.memory.empty() && options.config.empty() &&
         options.weight_forms == nullptr;
}

}  // namespace

PlanRow plan_of(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  PlanRow row;
  for (const Cover::Kernel& kernel : cover.kernels) {
    const CandidatePartition& partition = candidates[kernel.candidate].partition;
    PlanRow::Kernel& one = row.kernels.emplace_back();
    partition.sub_graph.inside().for_each([&](size_t node) { one.nodes.push_back(node); });
    one.target = partition.spec->target.to_string();
    one.variant = row_of(kernel, candidates).variant.to_string();
  }
  return row;
}

KnownPlan::KnownPlan(const Candidates& candidates, const ProgramOptions& options,
                     const ChooseOptions& choosing, CostDatabase& database)
    : options_(options),
      database_(database),
      text_(key_text(candidates, options, choosing)),
      context_(choosing.context) {}

std::optional<PlanRow> KnownPlan::find() const {
  if (!is_keyed(options_)) return std::nullopt;
  return find_value(database_, "plan", CostDatabase::key_of(text_, context_), plan_row_from_json);
}

void KnownPlan::remember(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                         bool complete) const {
  const bool is_local =
      std::any_of(cover.kernels.begin(), cover.kernels.end(), [&](const Cover::Kernel& kernel) {
        const Function& function = candidates[kernel.candidate].function;
        return tensor_program::is_local(function) && !tensor_program::runs_plans(function);
      });
  if (is_local || !is_keyed(options_)) return;
  PlanRow row = plan_of(cover, candidates);
  row.complete = complete;
  // Who may only read a server's rows has nothing to say as long as the plan is the same.
  const std::string key = CostDatabase::key_of(text_, context_), value = json_text(to_json(row));
  if (database_.find("plan", key) != value) database_.put("plan", key, text_, value, context_);
}

}  // namespace collage
