#include "tensor_program/stage_plan.h"

#include <algorithm>
#include <unordered_map>

#include "tensor_program/pattern_kind.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {

namespace {

double points_of(const std::vector<Axis>& axes) {
  double points = 1;
  for (const Axis& axis : axes) points *= static_cast<double>(axis.extent);
  return points;
}

/// Additions that take as long as the operation.
double cost_of(const TermNode& node) {
  const bool real = is_float(node.dtype);
  switch (node.op) {
    case TermOp::kConstant:
    case TermOp::kVar:
    case TermOp::kLoad:
    case TermOp::kLikely:
      return 0;
    case TermOp::kExp:
    case TermOp::kExpm1:
    case TermOp::kLog:
    case TermOp::kLog1p:
    case TermOp::kErf:
    case TermOp::kSin:
    case TermOp::kCos:
    case TermOp::kTanh:
    case TermOp::kPower:
      return 16;
    case TermOp::kSqrt:
    case TermOp::kDivide:
    case TermOp::kQuotient:
      return real ? 6 : 1;
    default:
      return 1;
  }
}

/// Decides which stages are kept, and writes the others into what reads them.
class Inliner {
 public:
  Inliner(Program& program, int64_t keeping)
      : program_(program), keeping_(static_cast<double>(keeping)) {}

  void run() {
    for (const Stage& stage : program_.stages) full_cost_[stage.name] = cost(stage);
    for (size_t i = program_.stages.size(); i-- > 0;) count_reads(program_.stages[i]);
    std::vector<Stage> kept;
    for (Stage& stage : program_.stages) {
      if (stage.value.defined()) stage.value = inlined(stage.value);
      for (Update& update : stage.updates) {
        for (Term& index : update.at) index = inlined(index);
        update.value = inlined(update.value);
      }
      (is_kept(stage) ? kept : gone_).push_back(stage);
    }
    program_.stages = std::move(kept);
  }

 private:
  /// Of one element of a stage that would be computed where it is read.
  double cost(const Stage& stage) const {
    if (!stage.value.defined() || !stage.updates.empty()) return 0;
    double total = 0;
    for_each_inside(stage.value, [&](const Term& term) {
      total += cost_of(*term.get());
      if (term->op == TermOp::kLoad)
        if (const auto found = full_cost_.find(term->name); found != full_cost_.end())
          total += found->second;
    });
    return total;
  }

  bool is_kept(const Stage& stage) const {
    if (stage.is_result || !stage.updates.empty()) return true;
    const double elements = points_of(stage.axes),
                 again = reads_.count(stage.name) == 0 ? 0 : reads_.at(stage.name) - elements;
    return again * full_cost_.at(stage.name) >= keeping_ * elements && again >= elements / 2;
  }

  /// The readers of the stage have been counted.
  void count_reads(const Stage& stage) {
    const double times = is_kept(stage)                  ? points_of(stage.axes)
                         : reads_.count(stage.name) != 0 ? reads_.at(stage.name)
                                                         : 0;
    if (stage.value.defined())
      for (const Term& read : distinct_loads(stage.value)) reads_[read->name] += times;
    for (const Update& update : stage.updates)
      for (const Term& read : distinct_loads(update.value))
        reads_[read->name] += points_of(walked_axes(stage, update));
  }

  Term inlined(const Term& term) const {
    return rewrite(term, [&](const Term& t) {
      if (t->op != TermOp::kLoad) return t;
      const auto stage = std::find_if(gone_.begin(), gone_.end(),
                                      [&](const Stage& s) { return s.name == t->name; });
      if (stage == gone_.end()) return t;
      std::vector<Replacement> at;
      for (size_t d = 0; d < t->args.size(); ++d) at.push_back({stage->axes[d].name, t->args[d]});
      return substitute(stage->value, at);
    });
  }

  Program& program_;
  const double keeping_;
  std::unordered_map<std::string, double> full_cost_, reads_;
  std::vector<Stage> gone_;
};

/// Whether the stage is one reduction over its own axes.
bool is_reduction(const Stage& stage) {
  return !stage.value.defined() && stage.updates.size() == 1 && !stage.updates[0].over.empty() &&
         stage.updates[0].combine != Combine::kSet && !stage.axes.empty() &&
         writes_own_elements(stage, stage.updates[0]);
}

/// Whether the load is of the element at the stage's own first indices; then come constants.
bool reads_own_element(const Stage& stage, const Term& load) {
  if (load->args.size() < stage.axes.size()) return false;
  for (size_t d = 0; d < load->args.size(); ++d)
    if (d < stage.axes.size() ? !is_variable(load->args[d], stage.axes[d].name)
                              : !known_integer(load->args[d]))
      return false;
  return true;
}

/// The one stage that reads `name`, if it does so in its value, at its own indices alone.
Stage* sole_reader(Program& program, const std::string& name) {
  Stage* reader = nullptr;
  for (Stage& stage : program.stages) {
    const std::vector<std::string> names = loaded_names(stage);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (reader != nullptr || !stage.value.defined() || !stage.updates.empty()) return nullptr;
    reader = &stage;
    for (const Term& load : distinct_loads(stage.value))
      if (load->name == name && !reads_own_element(stage, load)) return nullptr;
  }
  return reader;
}

/// The index with what it clamps marked as what it mostly is: compiled code then has loops for the
/// ends of arrays and one without clamps for what lies between them.
Term likely_inside(const Term& index) {
  if (index->op != TermOp::kMin && index->op != TermOp::kMax) return index;
  for (size_t i = 0; i < 2; ++i) {
    const Term &bound = index->args[i], &inside = index->args[1 - i];
    if (!known_integer(bound)) continue;
    const bool clamped = inside->op == TermOp::kMin || inside->op == TermOp::kMax;
    const bool from_data = !distinct_loads(inside).empty();
    if (from_data || inside->op == TermOp::kLikely) return index;
    return make_term(index->op, {clamped ? likely_inside(inside) : likely(inside), bound});
  }
  return index;
}

Term with_likely_indices(const Term& term) {
  return rewrite(term, [](const Term& t) {
    if (t->op != TermOp::kLoad) return t;
    std::vector<Term> at;
    for (const Term& index : t->args) at.push_back(likely_inside(index));
    return load(t->name, t->dtype, std::move(at));
  });
}

std::optional<size_t> rows_of(const Stage& sum) {
  const std::string& column = sum.axes.back().name;
  for (size_t d = sum.axes.size() - 1; d-- > 0;) {
    if (sum.axes[d].extent < 2) continue;
    for (const Term& load : distinct_loads(sum.updates[0].value))
      if (depends_on(load, column) && !depends_on(load, sum.axes[d].name)) return d;
  }
  return std::nullopt;
}

}  // namespace

bool StagePlan::is_sum(std::string_view stage) const {
  return std::any_of(sums.begin(), sums.end(), [&](const TiledSum& s) { return s.sum == stage; });
}

std::vector<const TiledSum*> StagePlan::sums_of(std::string_view consumer) const {
  std::vector<const TiledSum*> found;
  for (const TiledSum& sum : sums)
    if (sum.consumer == consumer) found.push_back(&sum);
  return found;
}

bool StagePlan::reads_parts(const Stage& stage) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const auto& part) { return part.second == stage.name; });
}

std::pair<Stage, Stage> with_consumer(const Stage& stage) {
  Stage consumer = stage, sum = stage;
  sum.name += "_sum";
  sum.is_result = false;
  sum.scope.clear();
  consumer.updates.clear();
  consumer.value = load(sum.name, sum.dtype, consumer.indices());
  return {std::move(sum), std::move(consumer)};
}

StagePlan plan_stages(Program program, int64_t keeping) {
  StagePlan plan;
  plan.program = std::move(program);
  Inliner(plan.program, keeping).run();
  for (Stage& stage : plan.program.stages)
    if (stage.value.defined()) stage.value = with_likely_indices(stage.value);
  for (size_t i = 0; i < plan.program.stages.size(); ++i) {
    Stage& stage = plan.program.stages[i];
    Stage* reader = stage.is_result ? nullptr : sole_reader(plan.program, stage.name);
    const bool part = reader != nullptr && reader->axes.size() < stage.axes.size() &&
                      plan.sums_of(reader->name).empty();
    if (part && !stage.updates.empty() && !stage.value.defined()) {
      plan.parts.emplace_back(stage.name, reader->name);
      continue;
    }
    if (!is_reduction(stage)) continue;
    const std::optional<size_t> rows = rows_of(stage);
    if (reader != nullptr && reader->shape() == stage.shape() && !plan.reads_parts(*reader)) {
      const auto others = plan.sums_of(reader->name);
      if (std::all_of(others.begin(), others.end(),
                      [&](const TiledSum* sum) { return sum->rows == rows; })) {
        plan.sums.push_back({stage.name, reader->name, rows});
        continue;
      }
    }
    auto [sum, consumer] = with_consumer(stage);
    plan.sums.push_back({sum.name, consumer.name, rows});
    plan.program.stages[i] = std::move(sum);
    ++i;
    plan.program.stages.insert(plan.program.stages.begin() + static_cast<std::ptrdiff_t>(i),
                               std::move(consumer));
  }
  return plan;
}

namespace {

/// Which dimension of the array the columns walk, where a copy in panels may serve the sum.
std::optional<size_t> panel_dimension(const Program& program, const Stage& sum, const Term& load) {
  const Axis& column = sum.axes.back();
  const Shape shape = program.type_of(load->name).shape;
  const auto walks = [&](const Axis& axis) { return depends_on(load, axis.name); };
  const std::vector<Axis>& over = sum.updates[0].over;
  if (std::none_of(over.begin(), over.end(), walks)) return std::nullopt;
  std::optional<size_t> dim;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Term& index = load->args[d];
    if (is_variable(index, column.name)) {
      if (dim || shape[d] != column.extent) return std::nullopt;
      dim = d;
    } else if (depends_on(index, column.name)) {
      return std::nullopt;
    } else if (index->op != TermOp::kVar && !known_integer(index)) {
      return std::nullopt;
    }
  }
  return dim;
}

}  // namespace

bool pack_columns(StagePlan& plan, const TiledSum& tiled, int64_t width, bool all) {
  Program& program = plan.program;
  const auto position = std::find_if(program.stages.begin(), program.stages.end(),
                                     [&](const Stage& stage) { return stage.name == tiled.sum; });
  Stage sum = *position;
  const Term column = var(sum.axes.back().name);
  const int lanes = static_cast<int>(width);
  std::vector<Stage> copies;
  for (const Term& factor : distinct_loads(sum.updates[0].value)) {
    const std::optional<size_t> dim = panel_dimension(program, sum, factor);
    const Shape shape = program.type_of(factor->name).shape;
    if (!dim || (!all && *dim + 1 == shape.size())) continue;
    Stage copy;
    copy.name = sum.name + "_panels" + std::to_string(copies.size());
    copy.dtype = factor.dtype();
    std::vector<Term> from(shape.size()), at;
    const auto add = [&](size_t d) {
      copy.axes.push_back({"d" + std::to_string(d), shape[d]});
      from[d] = var(copy.axes.back().name);
      at.push_back(factor->args[d]);
    };
    const auto is_axis = [&](size_t d) {
      return std::any_of(sum.axes.begin(), sum.axes.end(),
                         [&](const Axis& axis) { return is_variable(factor->args[d], axis.name); });
    };
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != *dim && is_axis(d)) add(d);
    copy.axes.push_back({"panel", shape[*dim] / width});
    at.push_back(column / lanes);
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != *dim && !is_axis(d)) add(d);
    copy.axes.push_back({"lane", width});
    at.push_back(column % lanes);
    from[*dim] = var("panel") * lanes + var("lane");
    copy.value = load(factor->name, factor.dtype(), from);
    sum.updates[0].value = rewrite(sum.updates[0].value, [&](const Term& t) {
      return same(t, factor) ? load(copy.name, copy.dtype, at) : t;
    });
    copies.push_back(std::move(copy));
  }
  if (copies.empty()) return false;
  *position = std::move(sum);
  program.stages.insert(position, copies.begin(), copies.end());
  return true;
}

}  // namespace collage::tensor_program
