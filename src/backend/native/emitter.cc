#include "backend/native/emitter.h"

#include <algorithm>
#include <limits>

#include "backend/native/halide_math.h"
#include "base/check.h"
#include "base/integers.h"

namespace collage::native {
namespace {

using Halide::Func;
using Halide::RDom;
using Halide::Var;

bool same(const Coords& a, const Coords& b) {
  if (a.logical.size() != b.logical.size()) return false;
  for (size_t i = 0; i < a.logical.size(); ++i) {
    if (!a.logical[i].same_as(b.logical[i]) && !Halide::Internal::equal(a.logical[i], b.logical[i]))
      return false;
  }
  return a.lane.defined() == b.lane.defined();
}

HExpr combine(Reduction kind, const HExpr& a, const HExpr& b) {
  switch (kind) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kProduct:
      return a * b;
    case Reduction::kMax:
      return Halide::max(a, b);
    case Reduction::kMin:
      return Halide::min(a, b);
  }
  return a;
}

HExpr identity(Reduction kind, Halide::Type type) {
  switch (kind) {
    case Reduction::kSum:
      return Halide::cast(type, 0);
    case Reduction::kProduct:
      return Halide::cast(type, 1);
    case Reduction::kMax:
      return type.min();
    case Reduction::kMin:
      return type.max();
  }
  return {};
}

}  // namespace

Halide::Type halide_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Halide::Float(32);
    case DType::kFloat64:
      return Halide::Float(64);
    case DType::kFloat16:
      return Halide::Float(16);
    case DType::kBFloat16:
      return Halide::BFloat(16);
    case DType::kInt8:
      return Halide::Int(8);
    case DType::kInt16:
      return Halide::Int(16);
    case DType::kInt32:
      return Halide::Int(32);
    case DType::kInt64:
      return Halide::Int(64);
    case DType::kUInt8:
      return Halide::UInt(8);
    case DType::kUInt16:
      return Halide::UInt(16);
    case DType::kUInt32:
      return Halide::UInt(32);
    case DType::kUInt64:
      return Halide::UInt(64);
    case DType::kBool:
      return Halide::UInt(8);
  }
  return Halide::Float(32);
}

HExpr literal(double value, DType dtype) {
  if (dtype == DType::kBool)
    return value != 0 ? Halide::Internal::const_true() : Halide::Internal::const_false();
  if (dtype == DType::kFloat32) return HExpr(static_cast<float>(value));
  if (dtype == DType::kFloat64) return HExpr(value);
  return Halide::Internal::make_const(halide_type(dtype), static_cast<int64_t>(value));
}

Emitter::Emitter(const Function& function, std::vector<Encoding> inputs, bool blocked,
                 bool row_stages)
    : function_(function), inputs_(std::move(inputs)), blocked_(blocked), row_stages_(row_stages) {}

const BufferArg& Emitter::param_buffer(size_t index) {
  auto [slot, fresh] = params_.try_emplace(index, bindings_.size());
  if (fresh) {
    const TensorType& type = function_->params[index]->tensor_type();
    const ChannelLayout layout =
        inputs_[index].layout.is_plain() ? ChannelLayout::kPlain : ChannelLayout::kBlocked;
    bindings_.push_back(
        {BufferArg("p" + std::to_string(index), halide_type(type.dtype), type.shape, layout),
         static_cast<int>(index),
         {},
         {},
         {}});
  }
  return bindings_[slot->second].buffer;
}

HExpr Emitter::constant_value(const Expr& node, const Coords& at) {
  const Tensor& tensor = as<ConstantNode>(node)->value;
  if (tensor.size() == 1) {
    if (is_integer(tensor.dtype()))
      return Halide::Internal::make_const(halide_type(tensor.dtype()), tensor.element_as_int64(0));
    return literal(tensor.element_as_double(0), tensor.dtype());
  }
  auto [slot, fresh] = constants_.try_emplace(node.get(), bindings_.size());
  if (fresh) {
    bindings_.push_back({BufferArg("c" + std::to_string(bindings_.size()),
                                   halide_type(tensor.dtype()), tensor.shape()),
                         -1,
                         tensor,
                         {},
                         {}});
  }
  HExpr value = bindings_[slot->second].buffer(Coords{at.logical, {}, {}});
  return tensor.dtype() == DType::kBool ? value != 0 : value;
}

HExpr Emitter::table_entry(std::vector<int32_t> table, const HExpr& index) {
  for (const Binding& binding : bindings_) {
    if (binding.table != nullptr && *binding.table == table) return binding.buffer({index});
  }
  auto shared = std::make_shared<std::vector<int32_t>>(std::move(table));
  bindings_.push_back({BufferArg("t" + std::to_string(bindings_.size()), Halide::Int(32),
                                 {static_cast<int64_t>(shared->size())}),
                       -1,
                       {},
                       {},
                       shared});
  return bindings_.back().buffer({index});
}

HExpr Emitter::value(const Expr& node, const Coords& at) { return leaf(node, 0, at); }

HExpr Emitter::leaf(const Expr& node, size_t index, const Coords& at) {
  if (node->type().is_tensor()) {
    COLLAGE_CHECK(at.logical.size() == node->tensor_type().shape.size(),
                  "native: {} coordinates for {}", at.logical.size(), node->type().to_string());
  }
  auto& memo = memo_[node.get()];
  for (const Memo& entry : memo) {
    if (entry.leaf == index && same(entry.at, at)) return entry.value;
  }
  HExpr value = compute(node, index, at);
  memo_[node.get()].push_back({at, index, value});
  return value;
}

HExpr Emitter::compute(const Expr& node, size_t index, const Coords& at) {
  if (auto bound = bound_.find(node.get()); bound != bound_.end()) return bound->second(at);
  switch (node->kind()) {
    case ExprKind::kVar: {
      for (size_t i = 0; i < function_->params.size(); ++i) {
        if (function_->params[i].get() != node.get()) continue;
        HExpr value = param_buffer(i)(at);
        return node->tensor_type().dtype == DType::kBool ? value != 0 : value;
      }
      break;
    }
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
      COLLAGE_CHECK(rule != nullptr, "native: no rule for {}",
                    call->op != nullptr ? call->op->name : "a function call");
      return rule->emit(*this, *call, index, at);
    }
    default:
      break;
  }
  COLLAGE_CHECK(false, "native: a node that no kernel holds");
  return {};
}

const Stage& Emitter::reduce(const CallNode& node, int slot, Reduction kind, const Shape& shape,
                             const std::vector<int64_t>& axes, const Access& element,
                             const std::function<HExpr(HExpr)>& finish) {
  const std::string key = fmt::format("{}/{}", static_cast<const void*>(&node), slot);
  if (auto found = stage_index_.find(key); found != stage_index_.end())
    return *stages_[found->second];

  const auto rank = static_cast<int64_t>(shape.size());
  auto reduced = [&](int64_t d) { return std::find(axes.begin(), axes.end(), d) != axes.end(); };
  auto stage = std::make_unique<Stage>();
  const std::string name = "s" + std::to_string(stages_.size());
  stage->lanes = blocked_ && rank >= 3 && !reduced(1);

  // Kept dimensions as variables; `kept[d]` for the element's coordinates.
  std::vector<Var> vars;  // innermost first
  std::vector<HExpr> at(static_cast<size_t>(rank));
  Coords coords;
  Var lane("lane"), block("block");
  if (stage->lanes) {
    vars.push_back(lane);
    stage->extents.push_back(kChannelBlock);
  }
  for (int64_t d = rank - 1; d >= 0; --d) {
    if (reduced(d)) continue;
    if (stage->lanes && d == 1) {
      vars.push_back(block);
      stage->extents.push_back(ceil_div(shape[1], kChannelBlock));
      HExpr channel = HExpr(block) * kChannelBlock + lane;
      at[1] = shape[1] % kChannelBlock == 0 ? channel : Halide::min(channel, to_int(shape[1] - 1));
      coords.block = block;
      coords.lane = lane;
      continue;
    }
    Var v("d" + std::to_string(d));
    vars.push_back(v);
    stage->extents.push_back(shape[static_cast<size_t>(d)]);
    at[static_cast<size_t>(d)] = v;
  }

  const int64_t inner = shape.empty() ? 1 : shape.back();
  const bool horizontal = !stage->lanes && rank > 0 && reduced(rank - 1) && inner >= 16;
  auto element_at = [&](const RDom& r, const HExpr& innermost) {
    Coords c = coords;
    c.logical = at;
    int next = 0;  // r's dimensions are innermost first
    for (int64_t d = rank - 1; d >= 0; --d) {
      if (!reduced(d)) continue;
      const HExpr position = r[next++];
      c.logical[static_cast<size_t>(d)] =
          d == rank - 1 && innermost.defined() ? innermost : position;
    }
    return element(c);
  };
  auto domain = [&](int64_t innermost_extent) {
    Halide::Region region;
    for (int64_t d = rank - 1; d >= 0; --d) {
      if (reduced(d))
        region.push_back(
            {0, to_int(d == rank - 1 && innermost_extent >= 0 ? innermost_extent
                                                              : shape[static_cast<size_t>(d)])});
    }
    return RDom(region);
  };

  std::vector<HExpr> kept(vars.begin(), vars.end());
  if (horizontal) {
    const int width = inner >= 128 ? 64 : 16;
    Var u("u");
    Func part(name + "_part");
    std::vector<Var> part_vars{u};
    part_vars.insert(part_vars.end(), vars.begin(), vars.end());
    auto part_at = [&](const HExpr& first) {
      std::vector<HExpr> index{first};
      index.insert(index.end(), kept.begin(), kept.end());
      return part(index);
    };
    RDom r = domain(inner / width);
    const HExpr sample = element_at(r, r[0] * width + u);
    part(part_vars) = identity(kind, sample.type());
    part(part_vars) = combine(kind, part_at(u), sample);
    int updates = 1;
    if (inner % width != 0) {
      RDom tail = domain(inner % width);
      const HExpr rest = element_at(tail, to_int(inner / width * width) + tail[0]);
      std::vector<HExpr> left{HExpr(tail[0])};
      left.insert(left.end(), kept.begin(), kept.end());
      part(left) = combine(kind, part(left), rest);
      ++updates;
    }
    if (updates > 1) part.update(1).unscheduled();
    part.vectorize(u, 16).unroll(u);
    part.update(0).reorder({u, r[0]}).vectorize(u, 16).unroll(u);
    // Pairwise, so that rounding errors stay small.
    std::vector<HExpr> sums;
    for (int i = 0; i < width; ++i) sums.push_back(part_at(i));
    while (sums.size() > 1) {
      std::vector<HExpr> next;
      for (size_t i = 0; i < sums.size() / 2; ++i)
        next.push_back(combine(kind, sums[i], sums[i + sums.size() / 2]));
      sums = std::move(next);
    }
    stage->total = Func(name);
    stage->total(vars) = finish(sums[0]);
    stage->parts.push_back(part);
  } else {
    Func sum(name + "_sum");
    RDom r = domain(-1);
    const HExpr sample = axes.empty() ? element_at(r, {}) : element_at(r, {});
    sum(vars) = identity(kind, sample.type());
    sum(vars) = combine(kind, sum(kept), sample);
    stage->total = Func(name);
    stage->total(vars) = finish(sum(kept));
    stage->parts.push_back(sum);
    stage->vectorise_parts = true;
  }
  stage_index_[key] = stages_.size();
  stages_.push_back(std::move(stage));
  return *stages_.back();
}

const Stage& Emitter::store(const CallNode& node, int slot, const Shape& shape,
                            const Access& element) {
  const std::string key = fmt::format("{}/{}", static_cast<const void*>(&node), slot);
  if (auto found = stage_index_.find(key); found != stage_index_.end())
    return *stages_[found->second];
  auto stage = std::make_unique<Stage>();
  stage->full = true;
  std::vector<Var> vars;
  Coords at;
  at.logical.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    Var v("d" + std::to_string(d));
    vars.push_back(v);
    stage->extents.push_back(shape[d]);
    at.logical[d] = v;
  }
  stage->total = Func("s" + std::to_string(stages_.size()));
  stage->total(vars) = element(at);
  stage_index_[key] = stages_.size();
  stages_.push_back(std::move(stage));
  return *stages_.back();
}

HExpr Emitter::read_kept(const Stage& stage, const std::vector<int64_t>& axes,
                         const Coords& at) const {
  std::vector<HExpr> index;
  if (stage.lanes) index.push_back(at.lane.defined() ? at.lane : at.logical[1] % kChannelBlock);
  for (auto d = static_cast<int64_t>(at.logical.size()) - 1; d >= 0; --d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    if (stage.lanes && d == 1) {
      index.push_back(at.lane.defined() ? at.block : at.logical[1] / kChannelBlock);
    } else {
      index.push_back(at.logical[static_cast<size_t>(d)]);
    }
  }
  return stage.total(index);
}

Coords broadcast_coords(const Shape& from, const Shape& to, const Coords& at) {
  Coords result;
  const size_t skip = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    result.logical.push_back(from[d] == 1 && to[d + skip] != 1 ? HExpr(0) : at.logical[d + skip]);
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

const EmitRule* find_emit_rule(std::string_view op_name) {
  static const EmitTable* table = [] {
    auto* rules = new EmitTable;
    add_elementwise_rules(*rules);
    add_injective_rules(*rules);
    add_window_rules(*rules);
    add_reduction_rules(*rules);
    return rules;
  }();
  auto found = table->find(op_name);
  return found == table->end() ? nullptr : &found->second;
}

}  // namespace collage::native
