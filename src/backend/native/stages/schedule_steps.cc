#include "backend/native/stages/schedule_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "backend/native/codegen/vector_width.h"
#include "base/integers.h"

namespace collage::native {

namespace tp = tensor_program;

namespace {

/// The widest numbers that the term computes, in bytes; 0 where it computes none of what it reads.
/// Indices do not count, nor do bools, of which a bit is kept.
size_t widest_number(const tp::Term& term, std::unordered_map<const tp::TermNode*, size_t>& memo) {
  if (const auto found = memo.find(term.get()); found != memo.end()) return found->second;
  size_t widest = 0;
  if (term->op != tp::TermOp::kLoad)
    for (const tp::Term& arg : term->args) widest = std::max(widest, widest_number(arg, memo));
  const bool read = term->op == tp::TermOp::kLoad || widest > 0;
  if (read && term.dtype() != DType::kBool) widest = std::max(widest, dtype_size(term.dtype()));
  return memo[term.get()] = widest;
}

}  // namespace

int64_t product(const Extents& extents, size_t begin) {
  return std::accumulate(
      extents.begin() + static_cast<std::ptrdiff_t>(std::min(begin, extents.size())), extents.end(),
      int64_t{1}, std::multiplies<>());
}

Names loops_of(const tp::Stage& stage) {
  Names names;
  for (size_t i = stage.axes.size(); i-- > 0;) names.push_back(stage.axes[i].name);
  return names;
}

Extents extents_of(const tp::Stage& stage) {
  const Shape shape = stage.shape();
  return {shape.rbegin(), shape.rend()};
}

FusedLoop fuse_from(Steps& steps, const Names& loops, const Extents& extents, size_t first) {
  FusedLoop loop;
  for (size_t i = first; i < loops.size(); ++i) {
    loop.extent *= extents[i];
    if (!loop.any()) {
      loop.name = loops[i];
    } else {
      const std::string fused = "fused" + std::to_string(i);
      steps.fuse(loop.name, loops[i], fused);
      loop.name = fused;
    }
  }
  return loop;
}

std::string split_tasks(Steps& steps, const FusedLoop& loop, int threads,
                        int64_t tasks_per_thread) {
  const int64_t tasks = std::min<int64_t>(loop.extent, tasks_per_thread * threads);
  const int64_t chunk = ceil_div(loop.extent, tasks);
  if (chunk <= 1) {
    steps.parallel(loop.name);
    return loop.name;
  }
  steps.split(loop.name, "task", "inside", chunk, true);
  steps.parallel("task");
  return "inside";
}

int vector_width_of(const tp::Term& term, int64_t extent) {
  std::unordered_map<const tp::TermNode*, size_t> memo;
  const size_t widest = widest_number(term, memo);
  int width = vector_width();
  if (widest == 1 || widest == 2) width *= static_cast<int>(sizeof(float) / widest);
  while (width > vector_width() && width > extent) width /= 2;
  return width;
}

void vectorise_by(Steps& steps, const std::string& loop, int64_t extent, int width,
                  int64_t vectors) {
  if (extent < width) return;
  vectors = std::min(vectors, extent / width);
  if (vectors == 1) {
    steps.vectorise(loop, width);
    return;
  }
  steps.split(loop, loop + "_tile", "column", vectors * width);
  steps.vectorise("column", width);
  steps.unroll("column");
}

namespace {

/// A vector or a long run of them is all there is.
void schedule_line(Steps& steps, const std::string& loop, int64_t extent, int width, int threads,
                   const LoopSizes& sizes) {
  if (extent < width) return;
  const bool divided = sizes.tasks ? *sizes.tasks > 0 : extent >= 2 * kSerialElements;
  if (!divided) {
    vectorise_by(steps, loop, extent, width, sizes.vectors);
    return;
  }
  const int64_t tasks = sizes.tasks.value_or(kTasksPerThread) * threads;
  const int64_t chunk = round_up(std::max<int64_t>(extent / tasks, 1), 256);
  steps.split(loop, "task", "inside", chunk, true);
  steps.parallel("task");
  if (sizes.vectors > 1) {
    vectorise_by(steps, "inside", chunk, width, sizes.vectors);
  } else {
    steps.vectorise("inside", width, true);
  }
}

}  // namespace

void schedule_loops(Steps& steps, const Names& loops, const Extents& extents, const tp::Term& value,
                    int threads, const LoopSizes& sizes) {
  if (loops.empty()) return;
  const int width = vector_width_of(value, extents[0]);
  if (loops.size() == 1) {
    schedule_line(steps, loops[0], extents[0], width, threads, sizes);
    return;
  }
  Names outer(loops.begin() + 1, loops.end());
  Extents outer_extents(extents.begin() + 1, extents.end());
  const int64_t lines = std::min(sizes.lines, extents[1]);
  if (lines > 1) {
    // Vectors of neighbouring lines one after the other: what they both read is in registers then.
    const int64_t vectors = std::max<int64_t>(1, std::min(sizes.vectors, extents[0] / width));
    steps.split(loops[1], "line_tile", "line", lines);
    outer[0] = "line_tile";
    outer_extents[0] = ceil_div(extents[1], lines);
    Names order{loops[0], "line"};
    if (extents[0] > vectors * width) {
      steps.split(loops[0], "column_tile", "column", vectors * width);
      order = {"column", "line", "column_tile"};
    }
    order.insert(order.end(), outer.begin(), outer.end());
    steps.reorder(order);
    if (extents[0] >= width) {
      steps.vectorise(order[0], width);
      if (vectors > 1) steps.unroll(order[0]);
    }
    steps.unroll("line");
  } else {
    vectorise_by(steps, loops[0], extents[0], width, sizes.vectors);
  }
  if (sizes.tasks ? *sizes.tasks == 0 : product(extents) < kSerialElements) return;
  const FusedLoop loop = fuse_from(steps, outer, outer_extents, 0);
  if (loop.any()) split_tasks(steps, loop, threads, sizes.tasks.value_or(kTasksPerThread));
}

}  // namespace collage::native
