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

std::vector<size_t> overlapped_order(const Plan& plan, const std::vector<size_t>& in_turn) {
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> writer(plan.buffers.size(), kNone);
  std::vector<DeviceStep> steps;
  for (const Step& step : plan.steps) {
    DeviceStep one{{}, step.device, device_of(plan, step.inputs), device_of(plan, step.outputs)};
    for (BufferId id : step.inputs)
      if (writer[id] != kNone) one.sources.push_back(writer[id]);
    for (BufferId id : step.outputs) writer[id] = steps.size();
    steps.push_back(std::move(one));
  }
  for (size_t i = 1; i < in_turn.size(); ++i) steps[in_turn[i]].sources.push_back(in_turn[i - 1]);
  return overlapped_order(steps);
}

}  // namespace collage
