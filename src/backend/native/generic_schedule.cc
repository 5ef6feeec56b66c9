#include "backend/native/generic_schedule.h"

#include <algorithm>
#include <numeric>

#include "backend/native/code_cache.h"
#include "base/integers.h"

namespace collage::native {
namespace {

using Halide::Func;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

constexpr int64_t kSerialElements = 8192;  // below, a fork and join costs more than it saves

int to_int(int64_t v) { return static_cast<int>(v); }

int64_t product(const std::vector<int64_t>& extents, size_t begin = 0) {
  return std::accumulate(
      extents.begin() + static_cast<std::ptrdiff_t>(std::min(begin, extents.size())), extents.end(),
      int64_t{1}, std::multiplies<>());
}

/// Fuses vars[first..] into one; undefined when there is none.
struct FusedLoop {
  bool any = false;
  Var var;
  int64_t extent = 1;
};

template <typename Target>
FusedLoop fuse_from(Target&& f, const std::vector<Var>& vars, const std::vector<int64_t>& extents,
                    size_t first) {
  FusedLoop loop;
  for (size_t i = first; i < vars.size(); ++i) {
    loop.extent *= extents[i];
    if (!loop.any) {
      loop.var = vars[i];
      loop.any = true;
    } else {
      Var fused("fused" + std::to_string(i));
      f.fuse(loop.var, vars[i], fused);
      loop.var = fused;
    }
  }
  return loop;
}

/// A few tasks a thread out of `extent` iterations of `loop`; returns the serial loop inside a
/// task.
template <typename Target>
Var split_tasks(Target&& f, const FusedLoop& loop, int threads) {
  const int64_t tasks = std::min<int64_t>(loop.extent, 8LL * threads);
  const int64_t chunk = ceil_div(loop.extent, tasks);
  if (chunk <= 1) {
    f.parallel(loop.var);
    return loop.var;
  }
  Var task("task"), inside("inside");
  f.split(loop.var, task, inside, to_int(chunk), TailStrategy::GuardWithIf).parallel(task);
  return inside;
}

struct Axes {
  std::vector<Var> vars;  // innermost first
  std::vector<int64_t> extents;
  Coords at;
  bool lanes = false;
  HExpr padding;  // condition that holds on padded lanes, or undefined
};

Axes result_axes(const TensorType& type, ChannelLayout layout) {
  Axes axes;
  axes.extents = physical_extents(type.shape, layout);
  axes.lanes = layout == ChannelLayout::kBlocked;
  // Not "v0": that is what Halide calls the first variable it makes itself.
  for (size_t i = 0; i < axes.extents.size(); ++i)
    axes.vars.emplace_back("axis" + std::to_string(i));
  const std::vector<HExpr> index(axes.vars.rbegin(), axes.vars.rend());
  if (!axes.lanes) {
    axes.at.logical = index;
    return axes;
  }
  axes.at.logical.assign(index.begin(), index.end() - 1);
  axes.at.block = axes.at.logical[1];
  axes.at.lane = index.back();
  HExpr channel = axes.at.block * kChannelBlock + axes.at.lane;
  axes.at.logical[1] = channel;
  if (type.shape[1] % kChannelBlock != 0) {
    axes.at.logical[1] = Halide::min(channel, to_int(type.shape[1] - 1));
    axes.padding = channel >= to_int(type.shape[1]);
  }
  return axes;
}

/// Vectorises the innermost loop and divides the outer ones into tasks.
template <typename Target>
void schedule_loops(Target&& f, const std::vector<Var>& vars, const std::vector<int64_t>& extents,
                    int threads) {
  const int width = vector_width();
  if (vars.empty()) return;
  const int64_t total = product(extents);
  if (vars.size() == 1) {
    if (extents[0] < width) return;
    if (total >= 2 * kSerialElements) {
      Var task("task"), inside("inside");
      const int64_t chunk = (total / (8LL * threads) + 255) / 256 * 256;
      f.split(vars[0], task, inside, to_int(chunk), TailStrategy::GuardWithIf).parallel(task);
      f.vectorize(inside, width, TailStrategy::GuardWithIf);
    } else {
      f.vectorize(vars[0], width);
    }
    return;
  }
  if (extents[0] >= width) f.vectorize(vars[0], width);
  if (total < kSerialElements) return;
  const FusedLoop loop = fuse_from(f, vars, extents, 1);
  if (loop.any) split_tasks(f, loop, threads);
}

bool is_direct_concatenation(const Expr& result, bool lanes) {
  const auto* call = as<CallNode>(result);
  if (call == nullptr || call->op == nullptr || call->op->name != "concatenate" ||
      as<TupleNode>(call->args[0]) == nullptr)
    return false;
  if (!lanes) return true;
  const int64_t axis =
      normal_axis_of(*call, "axis", static_cast<int64_t>(call->tensor_type().shape.size()));
  if (axis != 1) return true;
  const auto& fields = call->args[0]->type().fields();
  return std::all_of(fields.begin(), fields.end(),
                     [](const Type& f) { return f.tensor().shape[1] % kChannelBlock == 0; });
}

/// One update a field, each over its own part of the result: no element chooses among fields.
void define_concatenation(Func& out, Emitter& e, const Axes& axes, const CallNode& call,
                          int threads) {
  const auto rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const int64_t axis = normal_axis_of(call, "axis", rank);
  // Which physical dimension counts positions along the axis.
  size_t dim = static_cast<size_t>(rank - 1 - axis);
  if (axes.lanes) ++dim;
  const int64_t unit = axes.lanes && axis == 1 ? kChannelBlock : 1;
  out(axes.vars) = Halide::undef(halide_type(call.tensor_type().dtype));
  int64_t begin = 0;
  int stage = 0;
  for (const Expr& field : as<TupleNode>(call.args[0])->fields) {
    const int64_t extent = field->tensor_type().shape[static_cast<size_t>(axis)] / unit;
    if (extent == 0) continue;
    RDom r(0, to_int(extent));
    Coords at = axes.at;
    if (unit == 1) {
      at.logical[static_cast<size_t>(axis)] = r.x;
    } else {
      at.block = r.x;
      at.logical[1] = r.x * kChannelBlock + at.lane;
    }
    std::vector<HExpr> index(axes.vars.begin(), axes.vars.end());
    index[dim] = r.x + to_int(begin);
    HExpr value = e.value(field, at);
    if (field->tensor_type().dtype == DType::kBool) value = Halide::cast<uint8_t>(value);
    out(index) = value;
    auto update = out.update(stage++);
    // Loops: the vectorised innermost, then the rest; positions along the axis do not depend on
    // each other.
    std::vector<VarOrRVar> order;
    std::vector<Var> pure;
    std::vector<int64_t> pure_extents;
    for (size_t i = 0; i < axes.vars.size(); ++i) {
      if (i == dim) {
        order.push_back(r.x);
      } else {
        order.push_back(axes.vars[i]);
        pure.push_back(axes.vars[i]);
        pure_extents.push_back(axes.extents[i]);
      }
    }
    update.reorder(order);
    const int width = vector_width();
    update.allow_race_conditions();
    const bool large = extent * product(pure_extents) >= kSerialElements;
    if (dim == 0) {
      if (extent >= width) update.vectorize(r.x, width, TailStrategy::GuardWithIf);
      if (large && !pure.empty()) {
        const FusedLoop loop = fuse_from(update, pure, pure_extents, 0);
        split_tasks(update, loop, threads);
      }
    } else {
      // By default Halide rounds pure loops of an update up, past the end of the tensor.
      if (pure_extents[0] >= width) update.vectorize(pure[0], width, TailStrategy::GuardWithIf);
      if (large && extent >= 2)
        update.parallel(r.x);
      else if (large && pure.size() > 1)
        split_tasks(update, fuse_from(update, pure, pure_extents, 1), threads);
    }
    begin += extent;
  }
}

}  // namespace

int vector_width() {
  static const int width = kernel_target().natural_vector_size<float>();
  return width;
}

Func build_result(Emitter& e, const KernelGroup& group, const Expr& result, ChannelLayout layout,
                  int threads) {
  const TensorType& type = result->tensor_type();
  const Axes axes = result_axes(type, layout);
  Func out("result");
  if (is_direct_concatenation(result, axes.lanes) && !group.row_stages) {
    define_concatenation(out, e, axes, *as<CallNode>(result), threads);
    return out;
  }
  HExpr value = e.value(result, axes.at);
  if (type.dtype == DType::kBool) value = Halide::cast<uint8_t>(value);
  if (axes.padding.defined())
    value = Halide::select(axes.padding, Halide::Internal::make_zero(value.type()), value);
  out(axes.vars) = value;
  for (size_t i = 0; i < axes.vars.size(); ++i) out.bound(axes.vars[i], 0, to_int(axes.extents[i]));
  if (!group.row_stages) {
    schedule_loops(out, axes.vars, axes.extents, threads);
    return out;
  }
  // Row by row, the row's statistics inside.
  const int width = vector_width();
  const size_t inner = axes.vars.size() - static_cast<size_t>(group.row_axis);
  if (axes.extents[0] >= width) out.vectorize(axes.vars[0], width);
  const FusedLoop loop = fuse_from(out, axes.vars, axes.extents, inner);
  Var row = loop.var;
  if (product(axes.extents) * 4 >= kSerialElements && loop.extent > 1)
    row = split_tasks(out, loop, threads);
  for (auto& stage : e.stages()) {
    for (Func& part : stage->parts) part.compute_at(out, row);
    stage->total.compute_at(out, row);
    if (stage->full && stage->extents[0] >= width)
      stage->total.vectorize(stage->total.args()[0], width);
  }
  return out;
}

void schedule_stages_first(Emitter& e) {
  const int width = vector_width();
  for (auto& stage : e.stages()) {
    stage->total.compute_root();
    const std::vector<Var> vars = stage->total.args();
    if (stage->vectorise_parts) {
      Func part = stage->parts[0];
      part.compute_root();
      const bool wide = !vars.empty() && stage->extents[0] >= width;
      if (wide) {
        stage->total.vectorize(vars[0], width);
        part.vectorize(vars[0], width);
        // The reduction runs inside the tasks, over one vector at a time.
        Var vo("vo"), vi("vi");
        auto update = part.update();
        update.split(vars[0], vo, vi, width);
        std::vector<VarOrRVar> order{vi};
        for (const auto& r : part.rvars()) order.push_back(Halide::RVar(r));
        order.push_back(vo);
        for (size_t i = 1; i < vars.size(); ++i) order.push_back(vars[i]);
        update.reorder(order).vectorize(vi);
        if (vars.size() > 1 && stage->extents.back() * stage->extents[1] > 1) {
          std::vector<Var> rest(vars.begin() + 1, vars.end());
          std::vector<int64_t> extents(stage->extents.begin() + 1, stage->extents.end());
          const FusedLoop loop = fuse_from(update, rest, extents, 0);
          if (loop.any && loop.extent > 1) update.parallel(loop.var);
        } else if (stage->extents[0] > 2 * width) {
          update.parallel(vo);
        }
      }
      continue;
    }
    for (Func& part : stage->parts) {
      if (vars.empty()) {
        part.compute_root();
      } else {
        part.compute_at(stage->total, vars[0]);
      }
    }
    if (!vars.empty()) {
      const FusedLoop loop = fuse_from(stage->total, vars, stage->extents, vars.size() > 1 ? 1 : 0);
      if (loop.any && loop.extent > 1) stage->total.parallel(loop.var);
    }
  }
}

}  // namespace collage::native
