#include "lower/step_order.h"

#include "search/device_steps.h"

namespace collage {

namespace {

// The first of their devices that is not the host; the host.
VirtualDevice device_of(const Plan& plan, const std::vector<BufferId>& buffers) {
  for (BufferId id : buffers)
    if (!is_host_memory(plan.buffers[id].encoding.device)) return plan.buffers[id].encoding.device;
  return {};
}

}  // namespace

std::vector<size_t> overlapped_order(const Plan& plan) {
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> writer(plan.buffers.size(), kNone);
  size_t last_with_effects = kNone;
  std::vector<DeviceStep> steps;
  for (const Step& step : plan.steps) {
    DeviceStep one{{}, step.device, device_of(plan, step.inputs), device_of(plan, step.outputs)};
    for (BufferId id : step.inputs)
      if (writer[id] != kNone) one.sources.push_back(writer[id]);
    for (BufferId id : step.outputs) writer[id] = steps.size();
    if (step.has_effects) {
      if (last_with_effects != kNone) one.sources.push_back(last_with_effects);
      last_with_effects = steps.size();
    }
    steps.push_back(std::move(one));
  }
  return overlapped_order(steps);
}

}  // namespace collage
