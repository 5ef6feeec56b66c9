#include "backend/native/stages/stage_rows.h"

#include <algorithm>

#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;

const Stage* result_of(const tp::Program& program) {
  const std::vector<std::string> results = program.results();
  return results.size() == 1 ? program.find_stage(results[0]) : nullptr;
}

namespace {

/// Whether the index is the axis, moved by a constant and clamped.
bool is_near(const Term& index, const std::string& axis) {
  switch (index->op) {
    case tp::TermOp::kVar:
      return index->name == axis;
    case tp::TermOp::kLikely:
      return is_near(index->args[0], axis);
    case tp::TermOp::kAdd:
    case tp::TermOp::kSubtract:
    case tp::TermOp::kMin:
    case tp::TermOp::kMax:
      for (size_t i = 0; i < 2; ++i)
        if (tp::known_integer(index->args[i])) return is_near(index->args[1 - i], axis);
      return false;
    default:
      return false;
  }
}

enum class Rows { kOther, kNear, kSame };

/// Which rows of `name` the reader needs for a row of its own.
Rows rows_read(const Stage& reader, const std::string& name, size_t depth) {
  Rows rows = Rows::kSame;
  tp::for_each_term(reader, [&](const Term& term) {
    for (const Term& load : tp::distinct_loads(term)) {
      if (load->name != name) continue;
      for (size_t d = 0; d < depth; ++d) {
        if (tp::is_variable(load->args[d], reader.axes[d].name)) continue;
        const bool near = d + 1 == depth && is_near(load->args[d], reader.axes[d].name);
        rows = std::min(rows, near ? Rows::kNear : Rows::kOther);
      }
    }
  });
  return rows;
}

}  // namespace

std::map<std::string, bool> aligned_stages(const tp::StagePlan& plan, size_t depth) {
  const std::vector<Stage>& stages = plan.program.stages;
  const Stage& result = *result_of(plan.program);
  std::map<std::string, bool> aligned{{result.name, true}};
  for (size_t i = stages.size(); i-- > 0;) {
    const Stage& stage = stages[i];
    if (stage.is_result || stage.axes.size() < depth) continue;
    // What is written where indices say may be in any row.
    if (stage.value.defined() && !plan.is_sum(stage.name) && !stage.updates.empty()) continue;
    Rows rows = Rows::kSame;
    for (size_t d = 0; d < depth; ++d)
      if (stage.axes[d].extent != result.axes[d].extent) rows = Rows::kOther;
    for (size_t r = i + 1; rows != Rows::kOther && r < stages.size(); ++r) {
      const std::vector<std::string> names = tp::loaded_names(stages[r]);
      if (std::find(names.begin(), names.end(), stage.name) == names.end()) continue;
      const auto reader = aligned.find(stages[r].name);
      if (reader == aligned.end()) {
        rows = Rows::kOther;
      } else {
        rows = std::min({rows, rows_read(stages[r], stage.name, depth),
                         reader->second ? Rows::kSame : Rows::kNear});
      }
    }
    const bool simple = stage.updates.empty() && plan.sums_of(stage.name).empty();
    if (rows == Rows::kSame || (rows == Rows::kNear && simple))
      aligned[stage.name] = rows == Rows::kSame;
  }
  return aligned;
}

size_t depth_of_rows(const tp::StagePlan& plan) {
  const Stage* result = result_of(plan.program);
  if (result == nullptr || !result->updates.empty()) return 0;
  for (size_t depth = result->axes.size(); depth-- > 1;) {
    if (result->axes[depth - 1].extent < 2) continue;
    const std::map<std::string, bool> aligned = aligned_stages(plan, depth);
    const bool all = std::all_of(plan.program.stages.begin(), plan.program.stages.end(),
                                 [&](const Stage& stage) {
                                   return stage.updates.empty() || aligned.count(stage.name) != 0;
                                 });
    if (all) return depth;
  }
  return 0;
}

}  // namespace collage::native
