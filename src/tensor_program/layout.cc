#include "tensor_program/layout.h"

#include <algorithm>

#include "ir/op.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/pattern_kind.h"
#include "tensor_program/simplify.h"
#include "tensor_program/transform.h"

namespace collage::tensor_program {
namespace {

constexpr const char* kSource = "x";
constexpr const char* kResult = "y";

/// The program of a call that may be a layout.
std::optional<Program> moving_program(const CallNode& call) {
  if (call.op == nullptr || call.args.size() != 1 || !call.args[0]->type().is_tensor() ||
      !call.type().is_tensor())
    return std::nullopt;
  if (call.op->name == kCallOp) {
    Result<Program> program = program_of_call(call);
    if (!program || !program->schedule.empty()) return std::nullopt;
    return cancel_layouts(*program);
  }
  if (!call.op->is_view && call.op->name != "transpose") return std::nullopt;
  const Expr source = make_var(kSource, call.args[0]->type());
  Result<Expr> alone = make_call(*call.op, {source}, call.attrs);
  if (!alone) return std::nullopt;
  Result<Program> program = emit(make_function({source}, *alone));
  return program ? std::optional(std::move(program).value()) : std::nullopt;
}

}  // namespace

bool only_moves(const Stage& stage) {
  if (!stage.value.defined() || !stage.updates.empty() || stage.value->op != TermOp::kLoad)
    return false;
  const std::vector<Term>& at = stage.value->args;
  return std::all_of(at.begin(), at.end(),
                     [](const Term& index) { return loaded_names(index).empty(); });
}

bool is_identity(const Program& program, const Stage& stage) {
  return only_moves(stage) && program.type_of(stage.value->name).shape == stage.shape() &&
         are_own_indices(stage, stage.value->args);
}

Program layout_of(const Program& program, const Stage& stage) {
  Program layout;
  layout.buffers.push_back({kSource, program.type_of(stage.value->name)});
  Stage result;
  result.name = kResult;
  result.dtype = stage.dtype;
  result.axes = numbered_axes("i", stage.shape());
  result.is_result = true;
  std::vector<Replacement> renamed;
  for (size_t d = 0; d < stage.axes.size(); ++d)
    renamed.push_back({stage.axes[d].name, var(result.axes[d].name)});
  std::vector<Term> at;
  for (const Term& index : stage.value->args)
    at.push_back(simplify(substitute(index, renamed), result.axes));
  result.value = load(kSource, stage.dtype, std::move(at));
  layout.stages.push_back(std::move(result));
  return layout;
}

std::optional<Program> layout_of(const CallNode& call) {
  const std::optional<Program> program = moving_program(call);
  if (!program || program->stages.size() != 1 || !only_moves(program->stages[0]))
    return std::nullopt;
  const Stage& stage = program->stages[0];
  const Buffer* source = program->find_buffer(stage.value->name);
  if (source->is_constant || !source->scope.empty() || !stage.scope.empty()) return std::nullopt;
  return layout_of(*program, stage);
}

std::optional<Program> joined(const Program& inner, const Program& outer) {
  Program both = inner;
  both.stages[0].is_result = false;
  both.stages[0].name = "inner";
  Stage last = outer.stages[0];
  last.value = load("inner", last.dtype, last.value->args);
  both.stages.push_back(std::move(last));
  both = cancel_layouts(both);
  return both.stages.size() == 1 ? std::optional(std::move(both)) : std::nullopt;
}

bool cancel(const Program& inner, const Program& outer) {
  const std::optional<Program> both = joined(inner, outer);
  return both && is_identity(*both);
}

bool is_identity(const Program& layout) { return is_identity(layout, layout.stages[0]); }

}  // namespace collage::tensor_program
