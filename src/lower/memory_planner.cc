#include "lower/memory_planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/integers.h"

namespace collage {

namespace {

// By which step each is surely done: one on a CPU device beside the host when the host first reads
// what it leads to, else at the end. Others are done at once, or in the order of their device.
std::vector<size_t> done_by(const Plan& plan) {
  std::vector<size_t> done(plan.steps.size());
  std::vector<size_t> read(plan.buffers.size(), plan.steps.size() - 1);  // by a step that is done
  for (size_t s = plan.steps.size(); s-- > 0;) {
    const Step& step = plan.steps[s];
    const bool beside = is_host_memory(step.device) && step.device != VirtualDevice{};
    done[s] = s;
    if (beside) {
      done[s] = plan.steps.size() - 1;
      for (const BufferId id : step.outputs) done[s] = std::min(done[s], read[id]);
    }
    for (const BufferId id : step.inputs) read[id] = std::min(read[id], done[s]);
  }
  return done;
}

}  // namespace

std::vector<ArenaSlot> arena_slots(const Plan& plan) {
  const std::vector<size_t> done = done_by(plan);
  std::vector<ArenaSlot> slots;
  std::map<BufferId, size_t> slot_of;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const auto* list : {&step.inputs, &step.outputs})
      for (BufferId id : *list) {
        if (plan.buffers[id].place == Buffer::Place::kPart) id = plan.buffers[id].index;
        if (plan.buffers[id].place != Buffer::Place::kArena) continue;
        auto [it, inserted] = slot_of.try_emplace(id, slots.size());
        if (inserted)
          slots.push_back(
              {plan.buffers[id].encoding.device, s, id, {plan.buffers[id].bytes, s, s}});
        size_t& last = slots[it->second].lifetime.last;
        last = std::max(last, done[s]);
      }
    if (size_t bytes = step.kernel->workspace_bytes(); bytes > 0)
      slots.push_back({memory_device(step.device), s, std::nullopt, {bytes, s, done[s]}});
  }
  return slots;
}

ArenaLayout plan_arena(const std::vector<BufferLifetime>& buffers, size_t alignment) {
  auto rounded = [&](size_t i) { return round_up(buffers[i].bytes, alignment); };
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // by ascending offset
  for (size_t i : order) {
    size_t offset = 0;
    for (size_t other : placed) {
      bool together =
          buffers[other].first <= buffers[i].last && buffers[i].first <= buffers[other].last;
      if (!together) continue;
      if (offset + rounded(i) <= layout.offsets[other]) break;  // fits in the gap before it
      offset = std::max(offset, layout.offsets[other] + rounded(other));
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + rounded(i));
    auto position =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](size_t value, size_t other) { return value < layout.offsets[other]; });
    placed.insert(position, i);
  }
  return layout;
}

}  // namespace collage
