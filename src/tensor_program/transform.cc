#include "tensor_program/transform.h"

#include <algorithm>
#include <unordered_set>

#include "tensor_program/evaluate.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

using Names = std::unordered_set<std::string>;

std::vector<Axis> axes_within(const Stage& stage, const Update* update) {
  std::vector<Axis> axes = stage.axes;
  if (update != nullptr) axes.insert(axes.end(), update->over.begin(), update->over.end());
  return axes;
}

/// Replaces loads of `name` in every term of the stage; terms come out simplified.
void replace_loads(Stage& stage, std::string_view name,
                   const std::function<Term(const Term& load)>& by) {
  const auto replaced = [&](const Term& term, const Update* update) {
    const std::vector<std::string> names = loaded_names(term);
    if (std::find(names.begin(), names.end(), name) == names.end()) return term;
    return simplify(rewrite(term,
                            [&](const Term& t) {
                              return t->op == TermOp::kLoad && t->name == name ? by(t) : t;
                            }),
                    axes_within(stage, update));
  };
  if (stage.value.defined()) stage.value = replaced(stage.value, nullptr);
  for (Update& update : stage.updates) {
    for (Term& index : update.at) index = replaced(index, &update);
    update.value = replaced(update.value, &update);
  }
}

/// A stage every element of which is an element of one other array.
bool only_moves(const Stage& stage) {
  return stage.value.defined() && stage.updates.empty() && stage.value->op == TermOp::kLoad &&
         loaded_names(stage).size() == 1;
}

/// Its value at those indices.
Term value_at(const Stage& stage, const std::vector<Term>& at) {
  std::vector<Replacement> replacements;
  for (size_t i = 0; i < at.size(); ++i) replacements.push_back({stage.axes[i].name, at[i]});
  return substitute(stage.value, replacements);
}

bool is_identity(const Program& program, const Stage& stage) {
  if (!only_moves(stage) || program.type_of(stage.value->name).shape != stage.shape()) return false;
  for (size_t i = 0; i < stage.axes.size(); ++i)
    if (!same(stage.value->args[i], var(stage.axes[i].name))) return false;
  return true;
}

std::string unused_name(const Program& program, std::string name) {
  while (program.find_buffer(name) != nullptr || program.find_stage(name) != nullptr) name += "_";
  return name;
}

}  // namespace

Result<Program> block_layout(const Program& program, std::string_view buffer, size_t dim,
                             int64_t factor, bool outermost) {
  const Buffer* source = program.find_buffer(buffer);
  if (source == nullptr) return usage_error("tensor program: no buffer {}", buffer);
  const Shape& shape = source->type.shape;
  if (dim >= shape.size() || factor < 1 || shape[dim] % factor != 0)
    return usage_error("tensor program: dimension {} of {} has no blocks of {}", dim, buffer,
                       factor);
  Stage stage;
  stage.name = unused_name(program, std::string(buffer) + "_blocked");
  stage.dtype = source->type.dtype;
  std::vector<Term> at;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::string name = "i" + std::to_string(d);
    if (d == dim) {
      stage.axes.push_back({name + "_block", shape[d] / factor});
      at.push_back(var(name + "_block") * integer_constant(factor, DType::kInt32) +
                   var(name + "_inner"));
    } else {
      stage.axes.push_back({name, shape[d]});
      at.push_back(var(name));
    }
  }
  const auto rotate = [&](auto& list) {
    if (outermost)
      std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(dim),
                  list.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  };
  rotate(stage.axes);
  stage.axes.push_back({"i" + std::to_string(dim) + "_inner", factor});
  stage.value = load(source->name, source->type.dtype, at);
  Program result = program;
  const Term blocks = integer_constant(factor, DType::kInt32);
  for (Stage& reader : result.stages) {
    if (std::count(reader.external.inputs.begin(), reader.external.inputs.end(), buffer) != 0)
      return unsupported("tensor program: {} takes {} as it is", reader.external.label, buffer);
    replace_loads(reader, buffer, [&](const Term& t) {
      std::vector<Term> index = t->args;
      const Term position = index[dim];
      index[dim] = position / blocks;
      rotate(index);
      index.push_back(position % blocks);
      return load(stage.name, stage.dtype, std::move(index));
    });
  }
  result.stages.insert(result.stages.begin(), std::move(stage));
  return result;
}

Result<Lifted> lift_stage(const Program& program, std::string_view name) {
  const Stage* stage = program.find_stage(name);
  if (stage == nullptr) return usage_error("tensor program: no stage {}", name);
  if (stage->is_result)
    return unsupported("tensor program: {} is a result, nothing else reads it", name);
  const std::vector<std::string> sources = loaded_names(*stage);
  const Buffer* source = sources.size() == 1 ? program.find_buffer(sources[0]) : nullptr;
  if (source == nullptr)
    return unsupported("tensor program: {} does not read one buffer alone", name);
  Lifted lifted;
  Buffer param = *source;
  param.is_constant = false;
  param.value = {};
  lifted.stage.buffers.push_back(std::move(param));
  lifted.stage.stages.push_back(*stage);
  lifted.stage.stages[0].is_result = true;
  lifted.rest = program;
  Buffer buffer{stage->name, {stage->shape(), stage->dtype}, source->is_constant};
  lifted.rest.buffers.push_back(std::move(buffer));
  std::erase_if(lifted.rest.stages, [&](const Stage& s) { return s.name == name; });
  const auto scheduled = [&](const Primitive& step) { return step.stage == name; };
  std::copy_if(program.schedule.begin(), program.schedule.end(),
               std::back_inserter(lifted.stage.schedule), [&](const Primitive& step) {
                 return scheduled(step) && step.kind != PrimitiveKind::kComputeAt &&
                        step.kind != PrimitiveKind::kComputeRoot;
               });
  std::erase_if(lifted.rest.schedule, scheduled);
  // What the stage read may now serve nothing else.
  const std::string read = source->name;
  const bool used =
      std::any_of(lifted.rest.stages.begin(), lifted.rest.stages.end(), [&](const Stage& s) {
        const std::vector<std::string> names = loaded_names(s);
        return std::find(names.begin(), names.end(), read) != names.end();
      });
  if (!used) std::erase_if(lifted.rest.buffers, [&](const Buffer& b) { return b.name == read; });
  return lifted;
}

Result<Program> fold_constants(const Program& program) {
  Program result = program;
  for (const Stage& stage : program.stages) {
    if (stage.is_result) continue;
    Program alone;
    bool known = true;
    for (const std::string& name : loaded_names(stage)) {
      const Buffer* source = result.find_buffer(name);
      known = known && source != nullptr && source->is_constant && source->value.defined();
      if (known) alone.buffers.push_back(*source);
    }
    if (!known) continue;
    alone.stages.push_back(stage);
    alone.stages[0].is_result = true;
    std::vector<Tensor> values = TRY(evaluate(alone, {}));
    result.buffers.push_back({stage.name, {stage.shape(), stage.dtype}, true, values[0]});
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
      stage.value = simplify(value_at(*source, stage.value->args), stage.axes);
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
  std::erase_if(result.schedule, [&](const Primitive& step) {
    return unused(step.stage) || (step.kind == PrimitiveKind::kComputeAt && unused(step.names[0]));
  });
  return result;
}

}  // namespace collage::tensor_program
