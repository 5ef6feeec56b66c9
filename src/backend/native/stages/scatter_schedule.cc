#include "backend/native/stages/scatter_schedule.h"

#include <algorithm>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/stages/schedule_steps.h"
#include "base/integers.h"
#include "tensor_program/term_walk.h"
#include "tensor_program/transform.h"

namespace collage::native {

namespace tp = tensor_program;

void schedule_scatter(tp::Program& program, const tp::Stage& stage, size_t update, int threads) {
  const tp::Update& written = stage.updates[update];
  // The stage's own axes, innermost first: points that differ there write to different elements.
  Names own, order;
  Extents extents;
  int64_t terms = 1;
  for (size_t d = stage.axes.size(); d-- > 0;) {
    if (!tp::is_variable(written.at[d], stage.axes[d].name)) continue;
    own.push_back(stage.axes[d].name);
    extents.push_back(stage.axes[d].extent);
  }
  if (own.empty()) return;
  const std::string innermost = own[0];
  const bool along = innermost == stage.axes.back().name;  // neighbours in memory
  const bool uniform = std::all_of(written.at.begin(), written.at.end() - 1,
                                   [&](const auto& at) { return !tp::depends_on(at, innermost); });
  if (along) order.push_back(innermost);
  for (size_t i = written.over.size(); i-- > 0;) {
    order.push_back(written.over[i].name);
    terms *= written.over[i].extent;
  }
  const size_t outer = order.size();
  order.insert(order.end(), own.begin() + (along ? 1 : 0), own.end());
  Steps steps(program, stage.name, static_cast<int>(update));
  const bool divided = product(extents) * terms >= kSerialElements;
  const int64_t others = product(extents, along ? 1 : 0);
  if (along && divided && others < threads && extents[0] >= 2 * threads) {
    steps.split(innermost, "task", "inside", ceil_div(extents[0], threads), true);
    order[0] = "inside";
    order.emplace_back("task");
    extents[0] = ceil_div(extents[0], threads);
  }
  if (order.size() > 1) steps.reorder(order);
  const int width = vector_width_of(written.value, extents[0]);
  if (along && uniform && extents[0] >= width) steps.vectorise(order[0], width, true);
  if (!divided) return;
  if (order.back() == "task") return steps.parallel("task");
  const Names loops(order.begin() + static_cast<std::ptrdiff_t>(outer), order.end());
  const FusedLoop loop =
      fuse_from(steps, loops, {extents.begin() + (along ? 1 : 0), extents.end()}, 0);
  if (loop.any() && loop.extent > 1) split_tasks(steps, loop, threads);
}

bool schedule_gather(tp::Program& program, const tp::Stage& stage, int threads,
                     std::optional<int64_t> tasks) {
  constexpr int64_t kTile = 256, kAtOnce = 8;
  Extents extents = extents_of(stage);
  if (extents[0] % kAtOnce != 0 || extents[0] < kTile / 4 || !stage.updates.empty()) return false;
  const std::optional<std::string> positions = tp::stage_index(program, stage.name);
  if (!positions) return false;
  Names loops = loops_of(stage);
  Steps steps(program, stage.name), at(program, *positions);
  steps.split(loops[0], "tile", "inside_tile", kTile, true);
  steps.split("inside_tile", "group", "element", kAtOnce);
  steps.unroll("element");
  const bool divided = tasks ? *tasks > 0 : product(extents) >= kSerialElements;
  loops[0] = "tile";
  extents[0] = ceil_div(extents[0], kTile);
  const FusedLoop loop = fuse_from(steps, loops, extents, 0);
  at.compute_at(stage.name, divided && loop.extent > 1
                                ? split_tasks(steps, loop, threads, tasks.value_or(kTasksPerThread))
                                : loop.name);
  at.vectorise(stage.axes.back().name, vector_width(), true);
  return true;
}

}  // namespace collage::native
