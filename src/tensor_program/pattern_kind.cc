#include "tensor_program/pattern_kind.h"

#include <algorithm>
#include <unordered_set>

#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

/// Whether the term reads an array at one of the loops.
bool reads_along(const Term& root, const std::vector<Axis>& loops) {
  for (const Term& read : distinct_loads(root))
    for (const Axis& loop : loops)
      if (depends_on(read, loop.name)) return true;
  return false;
}

class Classifier {
 public:
  explicit Classifier(const Program& program) : program_(program) {}

  FusionKind run() {
    FusionKind kind = FusionKind::kElementwise;
    for (const Stage& stage : program_.stages) kind = std::max(kind, kind_of(stage));
    return kind;
  }

 private:
  FusionKind kind_of(const Stage& stage) {
    if (!stage.external.label.empty()) return FusionKind::kOpaque;
    FusionKind kind = FusionKind::kElementwise;
    if (stage.value.defined()) kind = kind_of_value(stage);
    for (const Update& update : stage.updates) {
      if (update.combine == Combine::kSet || !writes_own_elements(stage, update))
        return FusionKind::kOpaque;
      kind = std::max(kind, kind_of_reduction(update));
    }
    if (!stage.updates.empty()) reductions_.insert(stage.name);
    return kind;
  }

  FusionKind kind_of_reduction(const Update& update) const {
    for (const std::string& name : loaded_names(update.value))
      if (reductions_.count(name) != 0) return FusionKind::kAnchor;
    bool product = false;
    for_each_inside(update.value, [&](const Term& term) {
      product = product || (term->op == TermOp::kMultiply && !same(term->args[0], term->args[1]) &&
                            reads_along(term->args[0], update.over) &&
                            reads_along(term->args[1], update.over));
    });
    return product && update.combine == Combine::kSum ? FusionKind::kAnchor
                                                      : FusionKind::kReduction;
  }

  FusionKind kind_of_value(const Stage& stage) const {
    FusionKind kind = FusionKind::kElementwise;
    std::unordered_set<std::string> read;
    for (const Term& load : distinct_loads(stage.value)) {
      const FusionKind access = kind_of_access(stage, load);
      const Buffer* buffer = program_.find_buffer(load->name);
      const bool constant = buffer != nullptr && buffer->is_constant;
      if (reductions_.count(load->name) != 0 && access != FusionKind::kElementwise)
        return FusionKind::kAnchor;
      if (!constant && !read.insert(load->name).second) return FusionKind::kAnchor;
      kind = std::max(kind, access);
    }
    return kind;
  }

  /// How the stage's value reads the array.
  FusionKind kind_of_access(const Stage& stage, const Term& load) const {
    const Shape array = program_.type_of(load->name).shape;
    size_t next = 0;
    bool whole = array.size() == stage.axes.size();
    for (size_t d = 0; d < array.size(); ++d) {
      const Term& index = load->args[d];
      if (array[d] == 1 && is_integer_constant(index, 0)) {
        whole = whole && stage.axes[d].extent == 1;
        continue;
      }
      if (index->op != TermOp::kVar) return FusionKind::kInjective;
      size_t axis = next;
      while (axis < stage.axes.size() && stage.axes[axis].name != index->name) ++axis;
      if (axis == stage.axes.size() || stage.axes[axis].extent != array[d])
        return FusionKind::kInjective;
      whole = whole && axis == d;
      next = axis + 1;
    }
    return whole ? FusionKind::kElementwise : FusionKind::kBroadcast;
  }

  const Program& program_;
  std::unordered_set<std::string> reductions_;
};

}  // namespace

bool are_own_indices(const Stage& stage, const std::vector<Term>& at) {
  return std::equal(
      at.begin(), at.end(), stage.axes.begin(), stage.axes.end(),
      [](const Term& index, const Axis& axis) { return is_variable(index, axis.name); });
}

bool writes_own_elements(const Stage& stage, const Update& update) {
  return are_own_indices(stage, update.at);
}

FusionKind pattern_kind(const Program& program) { return Classifier(program).run(); }

}  // namespace collage::tensor_program
