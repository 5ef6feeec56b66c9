#include "lower/updates_in_place.h"

#include <algorithm>
#include <map>

#include "runtime/core_team.h"
#include "runtime/updating_kernel.h"

namespace collage {

void update_in_place(Plan& plan) {
  std::vector<size_t> last_read(plan.buffers.size(), 0);  // by which step
  std::vector<bool> has_parts(plan.buffers.size(), false);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const BufferId input : plan.steps[s].inputs) last_read[input] = s;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.place == Buffer::Place::kPart) has_parts[buffer.index] = true;

  std::map<BufferId, BufferId> memory_of;  // of what was updated before: the buffer it lies in
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const auto* kernel = dynamic_cast<const UpdatingKernel*>(&own_kernel(*step.kernel));
    if (kernel == nullptr) continue;
    for (const auto& [input, output] : kernel->updates()) {
      const BufferId from = step.inputs[input], to = step.outputs[output];
      const auto updated = memory_of.find(from);
      const BufferId memory = updated == memory_of.end() ? from : updated->second;
      Buffer &old = plan.buffers[memory], &made = plan.buffers[to];
      const bool is_dead =
          last_read[from] == s && std::count(step.inputs.begin(), step.inputs.end(), from) == 1;
      if (!is_dead || has_parts[from] || has_parts[memory] || old.place != Buffer::Place::kArena ||
          old.bytes != made.bytes || !is_host_memory(old.encoding.device) ||
          !is_host_memory(made.encoding.device))
        continue;
      if (made.place == Buffer::Place::kArena) {
        made.place = Buffer::Place::kPart;
        made.index = memory;
        memory_of[to] = memory;
      } else if (made.place == Buffer::Place::kOutput) {
        old.place = Buffer::Place::kPart;
        old.index = to;
      }
    }
  }
}

}  // namespace collage
