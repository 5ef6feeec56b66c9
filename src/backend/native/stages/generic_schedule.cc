#include "backend/native/stages/generic_schedule.h"

#include <algorithm>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/stages/schedule_steps.h"
#include "base/integers.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

/// The loops of a result, innermost first, and where an element of it is.
struct Axes {
  Names names;
  Extents extents;
  tp::Coords at;
  bool lanes = false, last = false;  // channels as block and lane; innermost
  tp::Term padding;                  // condition that holds on padded lanes, or undefined

  std::vector<tp::Axis> outermost_first() const {
    std::vector<tp::Axis> axes;
    for (size_t i = names.size(); i-- > 0;) axes.push_back({names[i], extents[i]});
    return axes;
  }
};

Axes result_axes(const TensorType& type, ChannelLayout layout) {
  Axes axes;
  axes.extents = physical_extents(type.shape, layout);
  axes.lanes = layout == ChannelLayout::kBlocked;
  // Not "v0": that is what Halide calls the first variable it makes itself.
  for (size_t i = 0; i < axes.extents.size(); ++i) axes.names.push_back("axis" + std::to_string(i));
  std::vector<tp::Term> index;
  for (size_t i = axes.names.size(); i-- > 0;) index.push_back(tp::var(axes.names[i]));
  axes.last = layout == ChannelLayout::kLast;
  if (axes.last) std::rotate(index.begin() + 1, index.end() - 1, index.end());
  if (!axes.lanes) {
    axes.at.logical = std::move(index);
    return axes;
  }
  axes.at.logical.assign(index.begin(), index.end() - 1);
  axes.at.block = axes.at.logical[1];
  axes.at.lane = index.back();
  const tp::Term channel = axes.at.block * kChannelBlock + axes.at.lane;
  axes.at.logical[1] = channel;
  if (type.shape[1] % kChannelBlock != 0) {
    axes.at.logical[1] = min(channel, to_int(type.shape[1] - 1));
    axes.padding = channel >= to_int(type.shape[1]);
  }
  return axes;
}

bool is_direct_concatenation(const Expr& result, bool lanes) {
  const auto* call = as<CallNode>(result);
  if (call == nullptr || call->op == nullptr || call->op->name != "concatenate" ||
      as<TupleNode>(call->args[0]) == nullptr)
    return false;
  if (!lanes) return true;
  const int64_t axis =
      tp::normal_axis_of(*call, "axis", static_cast<int64_t>(call->tensor_type().shape.size()));
  if (axis != 1) return true;
  const auto& fields = call->args[0]->type().fields();
  return std::all_of(fields.begin(), fields.end(),
                     [](const Type& f) { return f.tensor().shape[1] % kChannelBlock == 0; });
}

/// One update a field, each over its own part of the result: no element chooses among fields.
void define_concatenation(tp::Stage& out, tp::Emitter& e, const Axes& axes, const CallNode& call,
                          int threads) {
  const auto rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const int64_t axis = tp::normal_axis_of(call, "axis", rank);
  // Which physical dimension counts positions along the axis.
  size_t dim = static_cast<size_t>(rank - 1 - axis);
  if (axes.lanes || (axes.last && axis > 1)) ++dim;
  if (axes.last && axis == 1) dim = 0;
  const int64_t unit = axes.lanes && axis == 1 ? kChannelBlock : 1;
  const std::string walked = "along";
  int64_t begin = 0;
  for (const Expr& field : as<TupleNode>(call.args[0])->fields) {
    const int64_t extent = field->tensor_type().shape[static_cast<size_t>(axis)] / unit;
    if (extent == 0) continue;
    const tp::Term along = tp::var(walked);
    tp::Coords at = axes.at;
    if (unit == 1) {
      at.logical[static_cast<size_t>(axis)] = along;
    } else {
      at.block = along;
      at.logical[1] = along * kChannelBlock + at.lane;
    }
    tp::Update update{out.indices(), {{walked, extent}}, tp::Combine::kSet, e.value(field, at)};
    update.at[out.axes.size() - 1 - dim] = along + to_int(begin);
    out.updates.push_back(std::move(update));
    Steps steps(e.program(), out.name, static_cast<int>(out.updates.size()) - 1);
    // Loops: the vectorised innermost, then the rest; positions along the axis do not depend on
    // each other.
    Names order = axes.names, pure;
    order[dim] = walked;
    Extents pure_extents;
    for (size_t i = 0; i < axes.names.size(); ++i) {
      if (i == dim) continue;
      pure.push_back(axes.names[i]);
      pure_extents.push_back(axes.extents[i]);
    }
    steps.reorder(std::move(order));
    const int width =
        vector_width_of(out.updates.back().value, dim == 0 ? extent : pure_extents[0]);
    steps.allow_races();
    const bool large = extent * product(pure_extents) >= kSerialElements;
    if (dim == 0) {
      if (extent >= width) steps.vectorise(walked, width, true);
      if (large && !pure.empty())
        split_tasks(steps, fuse_from(steps, pure, pure_extents, 0), threads);
    } else {
      // By default loops of an update may run past the end of the tensor.
      if (pure_extents[0] >= width) steps.vectorise(pure[0], width, true);
      if (large && extent >= 2)
        steps.parallel(walked);
      else if (large && pure.size() > 1)
        split_tasks(steps, fuse_from(steps, pure, pure_extents, 1), threads);
    }
    begin += extent;
  }
}

}  // namespace

void add_result(tp::Emitter& e, const KernelGroup& group, const Expr& result,
                const std::string& name, ChannelLayout layout, int threads) {
  const TensorType& type = result->tensor_type();
  const Axes axes = result_axes(type, layout);
  tp::Stage out;
  out.name = name;
  out.dtype = type.dtype;
  out.axes = axes.outermost_first();
  out.is_result = true;
  if (is_direct_concatenation(result, axes.lanes) && !group.row_stages) {
    define_concatenation(out, e, axes, *as<CallNode>(result), threads);
    e.program().stages.push_back(std::move(out));
    return;
  }
  out.value = e.value(result, axes.at);
  if (axes.padding.defined()) out.value = select(axes.padding, tp::zero(type.dtype), out.value);
  const tp::Term value = out.value;
  e.program().stages.push_back(std::move(out));
  Steps steps(e.program(), name);
  if (!group.row_stages) {
    schedule_loops(steps, axes.names, axes.extents, value, threads);
    return;
  }
  // Row by row, the row's statistics inside.
  const int width = vector_width();
  const size_t inner = axes.names.size() - static_cast<size_t>(group.row_axis);
  if (axes.extents[0] >= width) steps.vectorise(axes.names[0], width);
  const FusedLoop loop = fuse_from(steps, axes.names, axes.extents, inner);
  std::string row = loop.name;
  if (product(axes.extents) * 4 >= kSerialElements && loop.extent > 1)
    row = split_tasks(steps, loop, threads);
  for (const auto& stored : e.stored()) {
    for (const std::string& part : stored->parts) Steps(e.program(), part).compute_at(name, row);
    Steps total(e.program(), stored->total);
    total.compute_at(name, row);
    const tp::Axis& innermost = e.program().find_stage(stored->total)->axes.back();
    if (stored->full && innermost.extent >= width) total.vectorise(innermost.name, width);
  }
}

void schedule_stages_first(tp::Emitter& e) {
  const int width = vector_width();
  for (const auto& stored : e.stored()) {
    Steps total(e.program(), stored->total);
    total.compute_root();
    const tp::Stage& stage = *e.program().find_stage(stored->total);
    const Names loops = loops_of(stage);
    const Extents extents = extents_of(stage);
    if (stored->vectorise_parts) {
      const std::string& name = stored->parts[0];
      Steps part(e.program(), name);
      part.compute_root();
      const bool wide = !loops.empty() && extents[0] >= width;
      if (wide) {
        total.vectorise(loops[0], width);
        part.vectorise(loops[0], width);
        // The reduction runs inside the tasks, over one vector at a time.
        Steps update(e.program(), name, 0);
        update.split(loops[0], "vo", "vi", width, extents[0] % width != 0);
        Names order{"vi"};
        const auto& over = e.program().find_stage(name)->updates[0].over;
        for (size_t i = over.size(); i-- > 0;) order.push_back(over[i].name);
        order.push_back("vo");
        order.insert(order.end(), loops.begin() + 1, loops.end());
        update.reorder(std::move(order));
        update.vectorise("vi");
        if (loops.size() > 1 && extents.back() * extents[1] > 1) {
          const FusedLoop loop = fuse_from(update, {loops.begin() + 1, loops.end()},
                                           {extents.begin() + 1, extents.end()}, 0);
          if (loop.any() && loop.extent > 1) update.parallel(loop.name);
        } else if (extents[0] > 2 * width) {
          update.parallel("vo");
        }
      }
      continue;
    }
    for (const std::string& name : stored->parts) {
      Steps part(e.program(), name);
      if (loops.empty()) {
        part.compute_root();
      } else {
        part.compute_at(stored->total, loops[0]);
      }
    }
    if (!loops.empty()) {
      const FusedLoop loop = fuse_from(total, loops, extents, loops.size() > 1 ? 1 : 0);
      if (loop.any() && loop.extent > 1) total.parallel(loop.name);
    }
  }
}

}  // namespace collage::native
