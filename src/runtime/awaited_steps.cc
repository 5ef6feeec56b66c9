#include "runtime/awaited_steps.h"

#include <algorithm>
#include <map>

#include "runtime/core_team.h"

namespace collage {

namespace {

struct Access {
  Buffer::Place place;  // the host's arena, an input or an output
  size_t index;
  size_t begin, end;  // bytes
  bool writes;

  bool conflicts(const Access& other) const {
    return place == other.place && index == other.index && (writes || other.writes) &&
           begin < other.end && other.begin < end;
  }
};

// Of the host's memory. Nobody writes constants.
std::vector<Access> accesses(const Plan& plan, const Step& step) {
  std::vector<Access> result;
  const auto add = [&](BufferId id, bool writes) {
    const Buffer& buffer = plan.buffers[id];
    const bool is_part = buffer.place == Buffer::Place::kPart;
    const Buffer& whole = is_part ? plan.buffers[buffer.index] : buffer;
    if (whole.place == Buffer::Place::kConstant || !is_host_memory(whole.encoding.device)) return;
    const bool in_arena = whole.place == Buffer::Place::kArena;
    const size_t begin = (in_arena ? whole.offset : 0) + (is_part ? buffer.offset : 0);
    result.push_back(
        {whole.place, in_arena ? 0 : whole.index, begin, begin + buffer.bytes, writes});
  };
  for (const BufferId id : step.inputs) add(id, false);
  for (const BufferId id : step.outputs) add(id, true);
  if (const size_t bytes = step.kernel->workspace_bytes(); bytes > 0 && is_host_memory(step.device))
    result.push_back(
        {Buffer::Place::kArena, 0, step.workspace_offset, step.workspace_offset + bytes, true});
  return result;
}

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Access& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Access& other) { return one.conflicts(other); });
  });
}

}  // namespace

std::vector<std::vector<size_t>> awaited_steps(const Plan& plan) {
  struct Beside {
    size_t step;
    std::vector<Access> accesses;
  };
  std::map<Cores, std::vector<Beside>> teams;  // what they were given so far
  std::vector<std::vector<size_t>> awaited(plan.steps.size());
  if (std::none_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
        return dynamic_cast<const CoreKernel*>(step.kernel.get()) != nullptr;
      }))
    return awaited;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const auto* kernel = dynamic_cast<const CoreKernel*>(step.kernel.get());
    std::vector<Access> own = accesses(plan, step);
    for (const auto& [cores, given] : teams) {
      if (kernel != nullptr && kernel->cores() == cores) continue;
      const auto last = std::find_if(given.rbegin(), given.rend(), [&](const Beside& earlier) {
        return (step.has_effects && plan.steps[earlier.step].has_effects) ||
               conflict(own, earlier.accesses);
      });
      if (last != given.rend()) awaited[s].push_back(last->step);
    }
    if (kernel != nullptr) teams[kernel->cores()].push_back({s, std::move(own)});
  }
  return awaited;
}

}  // namespace collage
