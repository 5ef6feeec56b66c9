#include "tensor_program/emit/emit.h"

#include <algorithm>
#include <unordered_set>

#include "ir/visitor.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

Status check_emittable(const Function& flat) {
  for (const Expr& node : post_order(flat->body)) {
    for (const TensorType& leaf : node->type().leaves()) {
      for (int64_t d : leaf.shape)
        if (d == 0) return unsupported("no tensor program of an empty tensor");
    }
    const auto* call = as<CallNode>(node);
    if (call == nullptr) continue;
    const EmitRule* rule = call->op != nullptr ? find_emit_rule(call->op->name) : nullptr;
    if (rule == nullptr)
      return unsupported("no tensor program of {}",
                         call->op != nullptr ? call->op->name : "a call of a function");
    Status checked = rule->check(*call);
    if (!checked.ok()) return std::move(checked).with_context("no tensor program");
  }
  return {};
}

/// A result that only copies the last stage: that stage is the result then.
bool becomes_result(Program& program, const Stage& result) {
  if (program.stages.empty() || result.value->op != TermOp::kLoad) return false;
  Stage& last = program.stages.back();
  if (last.is_result || result.value->name != last.name || last.shape() != result.shape())
    return false;
  for (size_t d = 0; d < result.axes.size(); ++d)
    if (!same(result.value->args[d], var(result.axes[d].name))) return false;
  last.is_result = true;
  return true;
}

/// Moves the second of three or more things to the end.
template <typename T>
void move_channels_last(std::vector<T>& dims) {
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
}

/// The sums of that rank with their channels innermost.
void walk_channels_last(Program& program, size_t rank) {
  std::unordered_set<std::string> moved;
  for (Stage& stage : program.stages) {
    const auto moved_loads = [&](const Term& root) {
      return rewrite(root, [&](const Term& term) {
        if (term->op != TermOp::kLoad || moved.count(term->name) == 0) return term;
        std::vector<Term> at = term->args;
        move_channels_last(at);
        return load(term->name, term->dtype, std::move(at));
      });
    };
    if (!stage.is_result && !stage.updates.empty() && stage.axes.size() == rank) {
      moved.insert(stage.name);
      move_channels_last(stage.axes);
      for (Update& update : stage.updates) move_channels_last(update.at);
    }
    if (stage.value.defined()) stage.value = moved_loads(stage.value);
    for (Update& update : stage.updates) update.value = moved_loads(update.value);
  }
}

}  // namespace

Result<Program> emit(const Function& function, EmitForm form) {
  const Function flat = TRY(inline_calls(function));
  TRY(check_emittable(flat));
  std::vector<ChannelLayout> layouts(flat->params.size() + 1, ChannelLayout::kPlain);
  if (!form.layouts.empty()) layouts = std::move(form.layouts);
  const bool channels_last = layouts.back() == ChannelLayout::kLast;
  layouts.pop_back();
  Emitter emitter(flat, std::move(layouts), form.row_stages, form.whole_reductions);
  const std::vector<TensorType> leaves = flat->body->type().leaves();
  const auto* tuple = as<TupleNode>(flat->body);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Stage result;
    result.name = "y" + std::to_string(i);
    result.is_result = true;
    result.axes = numbered_axes("i", leaves[i].shape);
    const Coords at{result.indices(), {}, {}};
    if (channels_last) move_channels_last(result.axes);
    result.value =
        tuple != nullptr ? emitter.value(tuple->fields[i], at) : emitter.leaf(flat->body, i, at);
    result.dtype = result.value.dtype();
    if (leaves.size() > 1 || !becomes_result(emitter.program(), result))
      emitter.program().stages.push_back(std::move(result));
  }
  if (channels_last) walk_channels_last(emitter.program(), leaves[0].shape.size());
  // Schedules of stages are for who compiles the program.
  emitter.program().schedule.clear();
  TRY(verify(emitter.program()));
  return std::move(emitter.program());
}

}  // namespace collage::tensor_program
