#include "tensor_program/transform.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tensor_program/evaluate.h"
#include "tensor_program/layout.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

using Names = std::unordered_set<std::string>;

std::vector<Axis> axes_within(const Stage& stage, const Update* update) {
  std::vector<Axis> axes = stage.axes;
  if (update != nullptr) axes.insert(axes.end(), update->over.begin(), update->over.end());
  return axes;
}

/// Replaces loads of `name` in every term of the stage. The indices of what replaces them come out
/// simplified, which other terms may not: numbers may overflow, as indices never do.
void replace_loads(Stage& stage, std::string_view name,
                   const std::function<Term(const Term& load)>& by) {
  const auto replaced = [&](const Term& term, const Update* update) {
    const std::vector<Axis> axes = axes_within(stage, update);
    return rewrite(term, [&](const Term& t) {
      if (t->op != TermOp::kLoad || t->name != name) return t;
      const Term made = by(t);
      std::vector<Term> at;
      for (const Term& index : made->args) at.push_back(simplify(index, axes));
      return load(made->name, made->dtype, std::move(at));
    });
  };
  if (stage.value.defined()) stage.value = replaced(stage.value, nullptr);
  for (Update& update : stage.updates) {
    for (Term& index : update.at) index = replaced(index, &update);
    update.value = replaced(update.value, &update);
  }
}

/// The value of a stage that only moves elements at those indices.
Term value_at(const Stage& stage, const std::vector<Term>& at) {
  std::vector<Replacement> replacements;
  for (size_t i = 0; i < at.size(); ++i) replacements.push_back({stage.axes[i].name, at[i]});
  return substitute(stage.value, replacements);
}

// Of an index, which text writes out however often its parts are shared.
constexpr size_t kMostParts = 1000;

/// How many parts the term has, each counted as often as it stands there.
size_t parts(const Term& root) {
  std::unordered_map<const TermNode*, size_t> known;
  const std::function<size_t(const Term&)> count = [&](const Term& term) {
    if (const auto found = known.find(term.get()); found != known.end()) return found->second;
    size_t sum = 1;
    for (const Term& arg : term->args) sum = std::min(sum + count(arg), kMostParts + 1);
    return known[term.get()] = sum;
  };
  return count(root);
}

/// The stage, and all that it is computed from.
Names dependencies(const Program& program, const Stage& stage) {
  Names needed{stage.name};
  for (size_t i = program.stages.size(); i-- > 0;)
    if (needed.count(program.stages[i].name) != 0)
      for (const std::string& name : loaded_names(program.stages[i])) needed.insert(name);
  return needed;
}

bool is_read(const Program& program, const std::string& name) {
  return std::any_of(program.stages.begin(), program.stages.end(), [&](const Stage& stage) {
    const std::vector<std::string> names = loaded_names(stage);
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

/// A step that is about a stage that others read.
bool says_where(const Primitive& step) {
  return is_at_loop(step) || step.kind == PrimitiveKind::kComputeRoot ||
         step.kind == PrimitiveKind::kInline;
}

/// Drops steps of stages that the program does not have, and at loops of such.
void drop_steps_of_none(Program& program) {
  std::erase_if(program.schedule, [&](const Primitive& step) {
    return program.find_stage(step.stage) == nullptr ||
           (is_at_loop(step) && program.find_stage(step.names[0]) == nullptr);
  });
}

bool is_parallel(const Program& program) {
  return std::any_of(program.schedule.begin(), program.schedule.end(),
                     [](const Primitive& step) { return step.kind == PrimitiveKind::kParallel; });
}

}  // namespace

Result<Lifted> lift_stage(const Program& program, std::string_view name) {
  const Stage* stage = program.find_stage(name);
  if (stage == nullptr) return usage_error("tensor program: no stage {}", name);
  if (stage->is_result)
    return unsupported("tensor program: {} is a result, nothing else reads it", name);
  const Names needed = dependencies(program, *stage);
  Lifted lifted;
  bool constant = true;
  for (const Buffer& buffer : program.buffers) {
    if (needed.count(buffer.name) == 0) continue;
    constant = constant && buffer.is_constant;
    lifted.stage.buffers.push_back(buffer);
  }
  for (const Stage& s : program.stages) {
    if (needed.count(s.name) == 0) continue;
    lifted.stage.stages.push_back(s);
    lifted.stage.stages.back().is_result = s.name == name;
  }
  for (const Primitive& step : program.schedule)
    if (step.stage != name || !says_where(step)) lifted.stage.schedule.push_back(step);
  drop_steps_of_none(lifted.stage);
  lifted.rest = program;
  std::erase_if(lifted.rest.stages, [&](const Stage& s) { return s.name == name; });
  lifted.rest.buffers.push_back({stage->name, {stage->shape(), stage->dtype}, constant});
  lifted.rest = without_unused(lifted.rest);
  // What the stage read may now serve nothing else.
  std::erase_if(lifted.rest.buffers, [&](const Buffer& buffer) {
    return needed.count(buffer.name) != 0 && !is_read(lifted.rest, buffer.name);
  });
  return lifted;
}

Result<Lifted> lift_result(const Program& program, std::string_view name) {
  const Stage* result = program.find_stage(name);
  if (result == nullptr || !result->is_result)
    return usage_error("tensor program: no result {}", name);
  const Stage* source = only_moves(*result) ? program.find_stage(result->value->name) : nullptr;
  if (source == nullptr)
    return unsupported("tensor program: {} does not move the elements of one stage", name);
  if (is_read(program, result->name))
    return unsupported("tensor program: {} is read by other stages", name);
  for (const Primitive& step : program.schedule)
    if (is_at_loop(step) && step.names[0] == name && step.stage != source->name)
      return unsupported("tensor program: {} is computed within {}", step.stage, name);
  Lifted lifted{layout_of(program, *result), program};
  const std::string kept = source->name;
  lifted.rest.find_stage(kept)->is_result = true;
  std::erase_if(lifted.rest.stages, [&](const Stage& s) { return s.name == name; });
  std::erase_if(lifted.rest.schedule,
                [&](const Primitive& step) { return step.stage == kept && says_where(step); });
  drop_steps_of_none(lifted.rest);
  if (is_parallel(program) && !is_parallel(lifted.rest)) lifted.rest.schedule.clear();
  return lifted;
}

Result<std::optional<Tensor>> constant_value(const Program& program, const Stage& stage) {
  Program alone;
  for (const std::string& name : loaded_names(stage)) {
    const Buffer* source = program.find_buffer(name);
    if (source == nullptr || !source->is_constant || !source->value.defined())
      return std::optional<Tensor>();
    alone.buffers.push_back(*source);
  }
  alone.stages.push_back(stage);
  alone.stages[0].is_result = true;
  return std::optional<Tensor>(TRY(evaluate(alone, {}))[0]);
}

Result<Program> fold_constants(const Program& program) {
  Program result = program;
  for (const Stage& stage : program.stages) {
    if (stage.is_result) continue;
    const std::optional<Tensor> value = TRY(constant_value(result, stage));
    if (!value) continue;
    result.buffers.push_back({stage.name, {stage.shape(), stage.dtype}, true, *value});
    std::erase_if(result.stages, [&](const Stage& s) { return s.name == stage.name; });
  }
  return without_unused(result);
}

Program cancel_layouts(const Program& program) {
  Program result = program;
  for (size_t i = 0; i < result.stages.size(); ++i) {
    Stage& stage = result.stages[i];
    while (only_moves(stage)) {
      const Stage* source = result.find_stage(stage.value->name);
      if (source == nullptr || !only_moves(*source)) break;
      const Term joined = simplify(value_at(*source, stage.value->args), stage.axes);
      if (parts(joined) > kMostParts) break;
      stage.value = joined;
    }
    if (stage.is_result || !is_identity(result, stage)) continue;
    const std::string name = stage.name, original = stage.value->name;
    for (size_t j = i + 1; j < result.stages.size(); ++j) {
      replace_loads(result.stages[j], name,
                    [&](const Term& t) { return load(original, t->dtype, t->args); });
      for (std::string& input : result.stages[j].external.inputs)
        if (input == name) input = original;
    }
  }
  return without_unused(result);
}

std::optional<std::string> stage_index(Program& program, std::string_view name) {
  const auto reader = std::find_if(program.stages.begin(), program.stages.end(),
                                   [&](const Stage& stage) { return stage.name == name; });
  if (!reader->value.defined() || reader->value->op != TermOp::kLoad || reader->axes.empty())
    return std::nullopt;
  std::vector<Term> at = reader->value->args;
  const auto is_loaded = [&](const Term& index) {
    const std::vector<Term> loads = distinct_loads(index);
    return std::any_of(loads.begin(), loads.end(), [&](const Term& load) {
      return depends_on(load, reader->axes.back().name);
    });
  };
  if (at.empty() || std::count_if(at.begin(), at.end(), is_loaded) != 1 || !is_loaded(at.back()))
    return std::nullopt;
  Stage index = *reader;
  index.name += "_at";
  index.is_result = false;
  index.value = at.back();
  index.dtype = index.value.dtype();
  at.back() = load(index.name, index.dtype, reader->indices());
  reader->value = load(reader->value->name, reader->value->dtype, std::move(at));
  const std::string made = index.name;
  program.stages.insert(reader, std::move(index));
  return made;
}

Program without_unused(const Program& program) {
  Names used;
  for (size_t i = program.stages.size(); i-- > 0;) {
    const Stage& stage = program.stages[i];
    if (stage.is_result) used.insert(stage.name);
    if (used.count(stage.name) == 0) continue;
    for (const std::string& name : loaded_names(stage)) used.insert(name);
  }
  Program result = program;
  const auto unused = [&](const std::string& name) { return used.count(name) == 0; };
  std::erase_if(result.stages, [&](const Stage& stage) { return unused(stage.name); });
  std::erase_if(result.buffers,
                [&](const Buffer& buffer) { return buffer.is_constant && unused(buffer.name); });
  drop_steps_of_none(result);
  return result;
}

}  // namespace collage::tensor_program
