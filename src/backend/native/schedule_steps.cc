#include "backend/native/schedule_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "backend/native/generic_schedule.h"
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

std::string split_tasks(Steps& steps, const FusedLoop& loop, int threads) {
  const int64_t tasks = std::min<int64_t>(loop.extent, 8LL * threads);
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

void schedule_loops(Steps& steps, const Names& loops, const Extents& extents, const tp::Term& value,
                    int threads) {
  if (loops.empty()) return;
  const int width = vector_width_of(value, extents[0]);
  const int64_t total = product(extents);
  if (loops.size() == 1) {
    if (extents[0] < width) return;
    if (total >= 2 * kSerialElements) {
      const int64_t chunk = (total / (8LL * threads) + 255) / 256 * 256;
      steps.split(loops[0], "task", "inside", chunk, true);
      steps.parallel("task");
      steps.vectorise("inside", width, true);
    } else {
      steps.vectorise(loops[0], width);
    }
    return;
  }
  if (extents[0] >= width) steps.vectorise(loops[0], width);
  if (total < kSerialElements) return;
  const FusedLoop loop = fuse_from(steps, loops, extents, 1);
  if (loop.any()) split_tasks(steps, loop, threads);
}

}  // namespace collage::native
