#include "tensor_program/emit/emitter.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "base/check.h"
#include "base/integers.h"

namespace collage::tensor_program {
namespace {

bool same_coords(const Coords& a, const Coords& b) {
  return std::equal(a.logical.begin(), a.logical.end(), b.logical.begin(), b.logical.end(), same) &&
         a.lane.defined() == b.lane.defined();
}

bool contains(const std::vector<int64_t>& axes, int64_t d) {
  return std::find(axes.begin(), axes.end(), d) != axes.end();
}

std::string numbered(std::string_view prefix, int64_t number) {
  return fmt::format("{}{}", prefix, number);
}

std::vector<Term> variables(const std::vector<Axis>& axes) {
  std::vector<Term> terms;
  for (const Axis& axis : axes) terms.push_back(var(axis.name));
  return terms;
}

}  // namespace

Emitter::Emitter(const Function& function, std::vector<ChannelLayout> params, bool row_stages,
                 bool whole_reductions)
    : function_(function),
      params_(std::move(params)),
      row_stages_(row_stages),
      whole_reductions_(whole_reductions) {
  for (ChannelLayout layout : params_)
    if (layout != ChannelLayout::kPlain) walked_ = layout;
}

Term Emitter::param_value(size_t index, const Coords& at) {
  const TensorType& type = function_->params[index]->tensor_type();
  const std::string name = numbered("p", static_cast<int64_t>(index));
  const ChannelLayout layout = params_[index];
  if (program_.find_buffer(name) == nullptr) {
    TensorType stored{physical_shape(type.shape, layout), type.dtype};
    program_.buffers.push_back({name, std::move(stored), false, {}, static_cast<int>(index)});
  }
  std::vector<Term> indices = at.logical;
  if (layout == ChannelLayout::kBlocked) {
    const bool known = at.lane.defined();
    indices[1] = known ? at.block : at.logical[1] / kChannelBlock;
    indices.push_back(known ? at.lane : at.logical[1] % kChannelBlock);
  } else if (layout == ChannelLayout::kLast) {
    std::rotate(indices.begin() + 1, indices.begin() + 2, indices.end());
  }
  return load(name, type.dtype, std::move(indices));
}

Term Emitter::constant_value(const Expr& node, const Coords& at) {
  const Tensor& tensor = as<ConstantNode>(node)->value;
  if (tensor.size() == 1) {
    if (is_integer(tensor.dtype()))
      return integer_constant(tensor.element_as_int64(0), tensor.dtype());
    return constant(tensor.element_as_double(0), tensor.dtype());
  }
  auto [name, fresh] = constants_.try_emplace(
      node.get(), numbered("c", static_cast<int64_t>(program_.buffers.size())));
  if (fresh)
    program_.buffers.push_back({name->second, {tensor.shape(), tensor.dtype()}, true, tensor});
  return load(name->second, tensor.dtype(), at.logical);
}

Term Emitter::table_entry(Tensor table, const Term& index) {
  for (const Buffer& buffer : program_.buffers)
    if (buffer.name[0] == 't' && buffer.type.dtype == table.dtype() &&
        buffer.type.shape == table.shape() &&
        std::memcmp(buffer.value.raw(), table.raw(), table.bytes()) == 0)
      return load(buffer.name, table.dtype(), {index});
  const std::string name = numbered("t", static_cast<int64_t>(program_.buffers.size()));
  const DType dtype = table.dtype();
  const TensorType type{table.shape(), dtype};
  program_.buffers.push_back({name, type, true, std::move(table)});
  return load(name, dtype, {index});
}

std::string Emitter::constant_buffer(Tensor values) {
  const std::string name = numbered("c", static_cast<int64_t>(program_.buffers.size()));
  const TensorType type{values.shape(), values.dtype()};
  program_.buffers.push_back({name, type, true, std::move(values)});
  return name;
}

std::string Emitter::stage_name() { return numbered("s", static_cast<int64_t>(names_++)); }

Term Emitter::value(const Expr& node, const Coords& at) { return leaf(node, 0, at); }

Term Emitter::leaf(const Expr& node, size_t index, const Coords& at) {
  if (node->type().is_tensor()) {
    COLLAGE_CHECK(at.logical.size() == node->tensor_type().shape.size(), "{} coordinates for {}",
                  at.logical.size(), node->type().to_string());
  }
  for (const Memo& entry : memo_[node.get()])
    if (entry.leaf == index && same_coords(entry.at, at)) return entry.value;
  Term value = compute(node, index, at);
  memo_[node.get()].push_back({at, index, value});
  return value;
}

Term Emitter::compute(const Expr& node, size_t index, const Coords& at) {
  if (auto bound = bound_.find(node.get()); bound != bound_.end()) return bound->second(at);
  switch (node->kind()) {
    case ExprKind::kVar:
      for (size_t i = 0; i < function_->params.size(); ++i)
        if (function_->params[i].get() == node.get()) return param_value(i, at);
      break;
    case ExprKind::kConstant:
      return constant_value(node, at);
    case ExprKind::kTuple:
      return value(as<TupleNode>(node)->fields[index], at);
    case ExprKind::kTupleGetItem: {
      const auto* get = as<TupleGetItemNode>(node);
      return leaf(get->tuple, static_cast<size_t>(get->index), at);
    }
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(node);
      const EmitRule* rule = call->op != nullptr ? find_emit_rule(call->op->name) : nullptr;
      COLLAGE_CHECK(rule != nullptr, "no rule for {}",
                    call->op != nullptr ? call->op->name : "a function call");
      return rule->emit(*this, *call, index, at);
    }
    default:
      break;
  }
  COLLAGE_CHECK(false, "a node that no kernel holds");
  return {};
}

const Stored* Emitter::find_stored(const CallNode& node, int slot) const {
  const auto found =
      stored_index_.find(fmt::format("{}/{}", static_cast<const void*>(&node), slot));
  return found == stored_index_.end() ? nullptr : stored_[found->second].get();
}

const Stored& Emitter::keep(const CallNode& node, int slot, std::unique_ptr<Stored> stored) {
  stored_index_[fmt::format("{}/{}", static_cast<const void*>(&node), slot)] = stored_.size();
  stored_.push_back(std::move(stored));
  return *stored_.back();
}

const Stored& Emitter::reduce(const CallNode& node, int slot, Combine kind, const Shape& shape,
                              const std::vector<int64_t>& axes, const Access& element,
                              const std::function<Term(Term)>& finish) {
  if (const Stored* stored = find_stored(node, slot)) return *stored;
  const auto rank = static_cast<int64_t>(shape.size());
  auto stored = std::make_unique<Stored>();
  stored->lanes = walked_ == ChannelLayout::kBlocked && rank >= 3 && !contains(axes, 1);
  const bool last = walked_ == ChannelLayout::kLast && rank >= 3 && !contains(axes, 1);
  stored->total = stage_name();

  // The kept dimensions, and the element's coordinates along them.
  std::vector<Axis> kept;
  Coords at;
  at.logical.resize(shape.size());
  for (int64_t d = 0; d < rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (contains(axes, d)) continue;
    if (stored->lanes && d == 1) {
      kept.push_back({"block", ceil_div(shape[1], kChannelBlock)});
      at.block = var("block");
      at.lane = var("lane");
      const Term channel = at.block * kChannelBlock + at.lane;
      at.logical[1] = shape[1] % kChannelBlock == 0 ? channel : min(channel, to_int(shape[1] - 1));
      continue;
    }
    kept.push_back({numbered("d", d), shape[i]});
    at.logical[i] = var(kept.back().name);
  }
  if (stored->lanes) kept.push_back({"lane", kChannelBlock});
  const std::vector<Term> kept_at = variables(kept);

  // Where the innermost dimension is reduced, `extent` of its positions are walked, at `position`.
  const auto add_update = [&](Stage& stage, std::vector<Term> index, int64_t extent,
                              const std::function<Term(const Term&)>& position) {
    Update update{std::move(index), {}, kind, {}};
    Coords c = at;
    for (int64_t d : axes) {
      const auto i = static_cast<size_t>(d);
      const bool innermost = d == rank - 1 && position;
      update.over.push_back({numbered("r", d), innermost ? extent : shape[i]});
      const Term walked = var(update.over.back().name);
      c.logical[i] = innermost ? position(walked) : walked;
    }
    update.value = element(c);
    stage.dtype = update.value.dtype();
    stage.updates.push_back(std::move(update));
  };

  const int64_t inner = shape.empty() ? 1 : shape.back();
  const bool horizontal =
      !whole_reductions_ && !stored->lanes && !last && contains(axes, rank - 1) && inner >= 16;
  Stage part, total;
  total.name = stored->total;
  total.axes = part.axes = kept;
  if (horizontal) {
    part.name = stored->total + "_part";
    const int64_t width = inner >= 128 ? 64 : 16;
    part.axes.push_back({"u", width});
    add_update(part, variables(part.axes), inner / width,
               [&](const Term& r) { return r * to_int(width) + var("u"); });
    if (inner % width != 0) {
      // Lanes that end where the row does; of what they read again nothing is taken.
      add_update(part, variables(part.axes), 1,
                 [&](const Term&) { return to_int(inner - width) + var("u"); });
      Term& value = part.updates.back().value;
      value = select(var("u") >= to_int(width - inner % width), value, neutral(kind, part.dtype));
    }
    std::vector<Term> sums;
    for (int i = 0; i < width; ++i) {
      std::vector<Term> index = kept_at;
      index.push_back(i);
      sums.push_back(load(part.name, part.dtype, std::move(index)));
    }
    total.value = finish(combined_pairwise(kind, std::move(sums)));
    const std::string walked = numbered("r", rank - 1);
    auto& schedule = program_.schedule;
    schedule.push_back({part.name, -1, PrimitiveKind::kVectorise, {"u"}, 16});
    schedule.push_back({part.name, -1, PrimitiveKind::kUnroll, {"u"}});
    for (int i = 0; i < static_cast<int>(part.updates.size()); ++i) {
      schedule.push_back({part.name, i, PrimitiveKind::kReorder, {"u", walked}});
      schedule.push_back({part.name, i, PrimitiveKind::kVectorise, {"u"}, 16});
      schedule.push_back({part.name, i, PrimitiveKind::kUnroll, {"u"}});
    }
  } else {
    part.name = stored->total + "_sum";
    add_update(part, kept_at, 0, {});
    total.value = finish(load(part.name, part.dtype, kept_at));
    stored->vectorise_parts = true;
  }
  total.dtype = stored->dtype = total.value.dtype();
  stored->parts.push_back(part.name);
  program_.stages.push_back(std::move(part));
  program_.stages.push_back(std::move(total));
  return keep(node, slot, std::move(stored));
}

Stage Emitter::next_stage(const Shape& shape) {
  Stage stage;
  stage.name = stage_name();
  stage.axes = numbered_axes("d", shape);
  return stage;
}

const Stored& Emitter::keep_whole(const CallNode& node, int slot, Stage stage) {
  auto stored = std::make_unique<Stored>();
  stored->total = stage.name;
  stored->dtype = stage.dtype;
  program_.stages.push_back(std::move(stage));
  return keep(node, slot, std::move(stored));
}

const Stored& Emitter::store(const CallNode& node, int slot, const Shape& shape,
                             const Access& element) {
  if (const Stored* stored = find_stored(node, slot)) return *stored;
  Stage stage = next_stage(shape);
  Coords at{stage.indices(), {}, {}};
  const bool lanes = walked_ == ChannelLayout::kBlocked && shape.size() >= 3;
  if (lanes) {
    stage.axes[1] = {"block", ceil_div(shape[1], kChannelBlock)};
    stage.axes.push_back({"lane", kChannelBlock});
    at.block = var("block");
    at.lane = var("lane");
    at.logical[1] = min(at.block * kChannelBlock + at.lane, to_int(shape[1] - 1));
  }
  stage.value = element(at);
  stage.dtype = stage.value.dtype();
  const Stored& stored = keep_whole(node, slot, std::move(stage));
  stored_.back()->lanes = lanes;
  return stored;
}

std::string Emitter::sum_stage(
    const CallNode& node, int slot, const Shape& axes, const Shape& over,
    const std::function<Term(const std::vector<Term>&, const std::vector<Term>&)>& element) {
  if (const Stored* stored = find_stored(node, slot)) return stored->total;
  Stage stage = next_stage(axes);
  Update update{stage.indices(), numbered_axes("r", over), Combine::kSum, {}};
  update.value = element(update.at, variables(update.over));
  stage.dtype = update.value.dtype();
  stage.updates.push_back(std::move(update));
  return keep_whole(node, slot, std::move(stage)).total;
}

std::string Emitter::updated_stage(const CallNode& node, int slot, const Shape& shape,
                                   const Access& start,
                                   const std::function<Update(const Stage&)>& update) {
  if (const Stored* stored = find_stored(node, slot)) return stored->total;
  Stage stage = next_stage(shape);
  stage.value = start({stage.indices(), {}, {}});
  stage.dtype = stage.value.dtype();
  stage.updates.push_back(update(stage));
  return keep_whole(node, slot, std::move(stage)).total;
}

std::string Emitter::joined_stage(const CallNode& node, int slot, const Shape& shape,
                                  const std::vector<std::pair<int64_t, Access>>& parts) {
  if (const Stored* stored = find_stored(node, slot)) return stored->total;
  Stage stage = next_stage(shape);
  int64_t begin = 0;
  for (const auto& [extent, element] : parts) {
    if (extent == 0) continue;
    Update update{stage.indices(), {{"along", extent}}, Combine::kSet, {}};
    update.at.back() = var("along");
    update.value = element({update.at, {}, {}});
    if (begin > 0) update.at.back() = update.at.back() + to_int(begin);
    stage.dtype = update.value.dtype();
    stage.updates.push_back(std::move(update));
    begin += extent;
  }
  return keep_whole(node, slot, std::move(stage)).total;
}

Term Emitter::read_kept(const Stored& stored, const std::vector<int64_t>& axes, const Coords& at) {
  std::vector<Term> index;
  for (size_t d = 0; d < at.logical.size(); ++d) {
    if (contains(axes, static_cast<int64_t>(d))) continue;
    if (stored.lanes && d == 1) {
      index.push_back(at.lane.defined() ? at.block : at.logical[1] / kChannelBlock);
    } else {
      index.push_back(at.logical[d]);
    }
  }
  if (stored.lanes) index.push_back(at.lane.defined() ? at.lane : at.logical[1] % kChannelBlock);
  return load(stored.total, stored.dtype, std::move(index));
}

Shape physical_shape(const Shape& shape, ChannelLayout layout) {
  Shape physical = shape;
  if (layout == ChannelLayout::kBlocked) {
    physical[1] = ceil_div(physical[1], kChannelBlock);
    physical.push_back(kChannelBlock);
  } else if (layout == ChannelLayout::kLast) {
    std::rotate(physical.begin() + 1, physical.begin() + 2, physical.end());
  }
  return physical;
}

Coords broadcast_coords(const Shape& from, const Shape& to, const Coords& at) {
  Coords result;
  const size_t skip = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    result.logical.push_back(from[d] == 1 && to[d + skip] != 1 ? Term(0) : at.logical[d + skip]);
  if (skip == 0 && from.size() >= 2 && from[1] == to[1] && at.lane.defined()) {
    result.lane = at.lane;
    result.block = at.block;
  }
  return result;
}

int64_t normal_axis_of(const CallNode& call, std::string_view attr, int64_t rank) {
  const int64_t axis = call.attrs.integer(attr);
  return axis < 0 ? axis + rank : axis;
}

Status check_float_args(const CallNode& call) {
  for (const auto& a : call.args)
    if (!a->type().is_tensor() || a->tensor_type().dtype != DType::kFloat32)
      return unsupported("{} of {}", call.op->name, a->type().to_string());
  return {};
}

bool is_narrow_integer(DType dtype) { return is_integer(dtype) && dtype_size(dtype) <= 2; }

bool is_movable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64 ||
         dtype == DType::kBool || is_narrow_integer(dtype);
}

bool is_ordered(const CallNode& call) {
  const TensorType& type = call.args[0]->tensor_type();
  return type.dtype != DType::kBool && is_movable(type.dtype);
}

Status check_movable_args(const CallNode& call) {
  for (const auto& a : call.args)
    for (const TensorType& leaf : a->type().leaves())
      if (!is_movable(leaf.dtype))
        return unsupported("{} of {}", call.op->name, a->type().to_string());
  return {};
}

namespace {

struct EmitRules {
  std::shared_mutex mutex;
  EmitTable table;
};
EmitRules& emit_rules() {
  static auto* all = [] {
    auto* made = new EmitRules;
    add_elementwise_rules(made->table);
    add_injective_rules(made->table);
    add_indexed_rules(made->table);
    add_window_rules(made->table);
    add_reduction_rules(made->table);
    add_product_rules(made->table);
    add_quantised_rules(made->table);
    add_sample_rules(made->table);
    add_called_rules(made->table);
    return made;
  }();
  return *all;
}

}  // namespace

const EmitRule* find_emit_rule(std::string_view op_name) {
  EmitRules& rules = emit_rules();
  std::shared_lock lock(rules.mutex);
  const auto found = rules.table.find(std::string(op_name));
  return found == rules.table.end() ? nullptr : &found->second;
}

Ints axes_reduced_by(const CallNode& call) {
  const EmitRule* rule = call.op != nullptr ? find_emit_rule(call.op->name) : nullptr;
  return rule == nullptr || rule->reduces == nullptr ? Ints() : rule->reduces(call);
}

void register_emit_rule(std::string op_name, EmitRule rule) {
  EmitRules& rules = emit_rules();
  std::lock_guard lock(rules.mutex);
  rules.table.emplace(std::move(op_name), rule);
}

}  // namespace collage::tensor_program
