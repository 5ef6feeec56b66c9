#include "tensor_program/set_elements.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

/// From first to before end, along one of the stage's dimensions.
struct Part {
  size_t dimension = 0;
  int64_t first = 0, end = 0;
};

bool reads(const Term& root, const std::string& array) {
  bool found = false;
  for_each_inside(root, [&](const Term& term) {
    found = found || (term->op == TermOp::kLoad && term->name == array);
  });
  return found;
}

/// Which positions an index takes: those of a loop, moved by a number.
class Positions {
 public:
  explicit Positions(std::vector<Axis> loops) : loops_(std::move(loops)) {}

  /// None where they are not known, or the loop was another index's already.
  std::optional<Part> of(const Term& index, size_t dimension, const Axis& axis) {
    const bool moved = index->op == TermOp::kAdd;
    const Term& base = moved ? index->args[0] : index;
    const std::optional<int64_t> by = moved ? known_integer(index->args[1]) : 0;
    if (const auto number = known_integer(base); number && by && !axis.size.defined())
      return Part{dimension, *number + *by, *number + *by + 1};
    const auto loop = std::find_if(loops_.begin(), loops_.end(),
                                   [&](const Axis& l) { return is_variable(base, l.name); });
    if (loop == loops_.end() || !by || !used_.insert(loop->name).second) return std::nullopt;
    const bool over_symbols = loop->size.defined() || axis.size.defined();
    if (over_symbols && (*by != 0 || !same(loop->size, axis.size))) return std::nullopt;
    return Part{dimension, *by, *by + loop->extent};
  }

 private:
  std::vector<Axis> loops_;
  std::unordered_set<std::string> used_;
};

/// What the update writes, where it is whole but along one dimension at most.
std::optional<Part> written(const Stage& stage, const Update& update) {
  Positions positions(walked_axes(stage, update));
  Part found{0, 0, stage.axes.empty() ? 1 : stage.axes[0].extent};
  bool cut = false;
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    const std::optional<Part> part = positions.of(update.at[d], d, stage.axes[d]);
    if (!part) return std::nullopt;
    if (part->first == 0 && part->end == stage.axes[d].extent) continue;
    if (cut) return std::nullopt;
    cut = true;
    found = *part;
  }
  return found;
}

}  // namespace

bool sets_all_elements(const Stage& stage) {
  std::vector<Part> parts;
  for (const Update& update : stage.updates) {
    if (update.combine != Combine::kSet || reads(update.value, stage.name)) break;
    if (const std::optional<Part> part = written(stage, update)) parts.push_back(*part);
  }
  if (parts.empty()) return false;
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.first < b.first; });
  const size_t dimension = parts[0].dimension;
  int64_t end = 0;
  for (const Part& part : parts)
    if (part.dimension == dimension && part.first <= end) end = std::max(end, part.end);
  return end >= (stage.axes.empty() ? 1 : stage.axes[dimension].extent);
}

}  // namespace collage::tensor_program
