#include "tensor_program/emit.h"

#include "ir/visitor.h"
#include "tensor_program/emitter.h"

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

}  // namespace

Result<Program> emit(const Function& function, EmitForm form) {
  const Function flat = TRY(inline_calls(function));
  TRY(check_emittable(flat));
  Emitter emitter(flat, std::vector<ChannelLayout>(flat->params.size(), ChannelLayout::kPlain),
                  form.row_stages, form.whole_reductions);
  const std::vector<TensorType> leaves = flat->body->type().leaves();
  const auto* tuple = as<TupleNode>(flat->body);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Stage result;
    result.name = "y" + std::to_string(i);
    result.is_result = true;
    result.axes = numbered_axes("i", leaves[i].shape);
    const Coords at{result.indices(), {}, {}};
    result.value =
        tuple != nullptr ? emitter.value(tuple->fields[i], at) : emitter.leaf(flat->body, i, at);
    result.dtype = result.value.dtype();
    if (leaves.size() > 1 || !becomes_result(emitter.program(), result))
      emitter.program().stages.push_back(std::move(result));
  }
  // Schedules of stages are for who compiles the program.
  emitter.program().schedule.clear();
  TRY(verify(emitter.program()));
  return std::move(emitter.program());
}

}  // namespace collage::tensor_program
