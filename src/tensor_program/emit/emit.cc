#include "tensor_program/emit/emit.h"

#include <algorithm>
#include <unordered_set>

#include "base/integers.h"
#include "ir/op.h"
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

/// A result of that layout without a value, and the coordinates of its element.
struct Laid {
  Stage stage;
  Coords at;
  Term padding;  ///< of blocked channels: whether the lane is beyond the last one
};

Laid laid_out(size_t number, const TensorType& type, ChannelLayout layout) {
  Laid result;
  Stage& stage = result.stage;
  stage.name = "y" + std::to_string(number);
  stage.is_result = true;
  stage.dtype = type.dtype;
  stage.axes = numbered_axes("i", type.shape);
  result.at.logical = stage.indices();
  if (layout == ChannelLayout::kLast) move_channels_last(stage.axes);
  if (layout != ChannelLayout::kBlocked) return result;
  const int64_t channels = type.shape[1];
  stage.axes[1].extent = ceil_div(channels, int64_t{kChannelBlock});
  stage.axes.push_back({"lane", kChannelBlock});
  result.at.block = var(stage.axes[1].name);
  result.at.lane = var("lane");
  const Term channel = result.at.block * kChannelBlock + result.at.lane;
  const bool padded = channels % kChannelBlock != 0;
  result.at.logical[1] = padded ? min(channel, to_int(channels - 1)) : channel;
  if (padded) result.padding = channel >= to_int(channels);
  return result;
}

/// The tensors that the result joins, if it does so and their parts are runs of whole indices.
const TupleNode* joined_by(const Expr& result, ChannelLayout layout) {
  const CallNode* call = as_op(result, "concatenate");
  const auto* tuple = call == nullptr ? nullptr : as<TupleNode>(call->args[0]);
  if (tuple == nullptr || layout != ChannelLayout::kBlocked) return tuple;
  const auto rank = static_cast<int64_t>(call->tensor_type().shape.size());
  const bool whole = normal_axis_of(*call, "axis", rank) != 1 ||
                     std::all_of(tuple->fields.begin(), tuple->fields.end(), [](const Expr& f) {
                       return f->tensor_type().shape[1] % kChannelBlock == 0;
                     });
  return whole ? tuple : nullptr;
}

/// One update a tensor.
void join(Stage& stage, Emitter& emitter, const Coords& at, const CallNode& call,
          const TupleNode& tuple) {
  const std::string walked = "along";
  const auto rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank));
  const bool blocks = at.block.defined() && axis == 1;
  const Term place = blocks ? at.block : at.logical[axis];
  int64_t begin = 0;
  for (const Expr& field : tuple.fields) {
    const int64_t extent = field->tensor_type().shape[axis] / (blocks ? int64_t{kChannelBlock} : 1);
    const Term along = var(walked);
    Coords own = at;
    own.logical[axis] = blocks ? along * kChannelBlock + at.lane : along;
    if (blocks) own.block = along;
    Update update{stage.indices(), {{walked, extent}}, Combine::kSet, emitter.value(field, own)};
    for (Term& index : update.at)
      if (same(index, place)) index = along + to_int(begin);
    stage.updates.push_back(std::move(update));
    begin += extent;
  }
}

}  // namespace

Result<Program> emit(const Function& function, EmitForm form) {
  const Function flat = TRY(inline_calls(function));
  TRY(check_emittable(flat));
  std::vector<ChannelLayout> layouts(flat->params.size() + 1, ChannelLayout::kPlain);
  if (!form.layouts.empty()) layouts = std::move(form.layouts);
  const ChannelLayout layout = layouts.back();
  layouts.pop_back();
  Emitter emitter(flat, std::move(layouts), form.row_stages, form.whole_reductions);
  emitter.join_by_parts(form.joins_by_parts);
  const std::vector<TensorType> leaves = flat->body->type().leaves();
  const auto* tuple = as<TupleNode>(flat->body);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Laid result = laid_out(i, leaves[i], layout);
    Stage& stage = result.stage;
    const Expr& node = tuple != nullptr ? tuple->fields[i] : flat->body;
    const TupleNode* joined =
        form.joins_by_parts && node->type().is_tensor() ? joined_by(node, layout) : nullptr;
    if (joined != nullptr) {
      join(stage, emitter, result.at, *as<CallNode>(node), *joined);
    } else {
      stage.value =
          tuple != nullptr ? emitter.value(node, result.at) : emitter.leaf(node, i, result.at);
      stage.dtype = stage.value.dtype();
      if (result.padding.defined())
        stage.value = select(result.padding, zero(stage.dtype), stage.value);
    }
    if (leaves.size() > 1 || joined != nullptr || !becomes_result(emitter.program(), stage))
      emitter.program().stages.push_back(std::move(stage));
  }
  if (layout == ChannelLayout::kLast) walk_channels_last(emitter.program(), leaves[0].shape.size());
  // Schedules of stages are for who compiles the program.
  emitter.program().schedule.clear();
  TRY(verify(emitter.program()));
  return std::move(emitter.program());
}

}  // namespace collage::tensor_program
