#include "tensor_program/emit/merged_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {

namespace {

using Position = std::optional<size_t>;
using Seen = std::unordered_set<const TermNode*>;

/// Merges axis d of every stage with the next one.
class Merger {
 public:
  Merger(Program& program, size_t d) : program_(program), d_(d) {}

  bool run() {
    for (const Stage& stage : program_.stages)
      if (!note(stage.name, d_) || !look(stage)) return false;
    for (const Buffer& buffer : program_.buffers)
      if (!fits(buffer)) return false;
    apply();
    return true;
  }

 private:
  /// Where the array has the two dimensions; false where another reader finds them elsewhere.
  bool note(const std::string& array, Position at) {
    return merged_.emplace(array, at).first->second == at;
  }

  bool look(const Stage& stage) {
    const std::string &first = stage.axes[d_].name, &second = stage.axes[d_ + 1].name;
    Seen seen;
    if (stage.value.defined() && !look(stage.value, first, second, seen)) return false;
    return std::all_of(stage.updates.begin(), stage.updates.end(), [&](const Update& update) {
      return is_variable(update.at[d_], first) && is_variable(update.at[d_ + 1], second) &&
             look(update.value, first, second, seen);
    });
  }

  /// Every load, and that the axes stand nowhere else.
  bool look(const Term& term, const std::string& first, const std::string& second, Seen& seen) {
    if (!seen.insert(term.get()).second) return true;
    if (term->op == TermOp::kVar) return term->name != first && term->name != second;
    if (term->op != TermOp::kLoad)
      return std::all_of(term->args.begin(), term->args.end(),
                         [&](const Term& arg) { return look(arg, first, second, seen); });
    Position at;
    for (size_t p = 0; p < term->args.size(); ++p) {
      const bool pair = p + 1 < term->args.size() && is_variable(term->args[p], first) &&
                        is_variable(term->args[p + 1], second);
      if (pair && !at) {
        at = p++;
      } else if (!look(term->args[p], first, second, seen)) {
        return false;
      }
    }
    return note(term->name, at);
  }

  bool fits(const Buffer& buffer) const {
    const auto found = merged_.find(buffer.name);
    if (found == merged_.end() || !found->second) return true;
    const size_t p = *found->second;
    const std::vector<Axis>& axes = program_.stages.back().axes;
    return !buffer.is_constant && buffer.type.shape[p] == axes[d_].extent &&
           buffer.type.shape[p + 1] == axes[d_ + 1].extent;
  }

  Term without_second(const Term& root) const {
    return rewrite(root, [&](const Term& term) {
      if (term->op != TermOp::kLoad || !merged_.at(term->name)) return term;
      std::vector<Term> at = term->args;
      at.erase(at.begin() + static_cast<std::ptrdiff_t>(*merged_.at(term->name)) + 1);
      return load(term->name, term->dtype, std::move(at));
    });
  }

  void apply() {
    for (Buffer& buffer : program_.buffers) {
      const auto found = merged_.find(buffer.name);
      if (found == merged_.end() || !found->second) continue;
      const auto first = buffer.type.shape.begin() + static_cast<std::ptrdiff_t>(*found->second);
      *first *= first[1];
      buffer.type.shape.erase(first + 1);
    }
    const auto second = static_cast<std::ptrdiff_t>(d_) + 1;
    for (Stage& stage : program_.stages) {
      if (stage.value.defined()) stage.value = without_second(stage.value);
      for (Update& update : stage.updates) {
        update.value = without_second(update.value);
        update.at.erase(update.at.begin() + second);
      }
      stage.axes[d_].extent *= stage.axes[d_ + 1].extent;
      stage.axes.erase(stage.axes.begin() + second);
    }
  }

  Program& program_;
  size_t d_;
  std::map<std::string, Position> merged_;
};

}  // namespace

Program merged_rows(Program program) {
  const std::vector<std::string> results = program.results();
  if (results.size() != 1) return program;
  const Stage* result = program.find_stage(results[0]);
  size_t depth = result->axes.size();
  for (const Stage& stage : program.stages) {
    if (!stage.external.label.empty()) return program;
    if (!stage.updates.empty()) depth = std::min(depth, stage.axes.size());
  }
  for (const Stage& stage : program.stages)
    for (size_t d = 0; d < depth; ++d)
      if (d >= stage.axes.size() || stage.axes[d].extent != result->axes[d].extent) return program;
  for (size_t d = depth; d-- > 1;) Merger(program, d - 1).run();
  return program;
}

}  // namespace collage::tensor_program
