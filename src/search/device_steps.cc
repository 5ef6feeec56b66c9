#include "lower/step_order.h"

#include <algorithm>
#include <queue>

namespace collage {

namespace {

enum class Urgency { kStartsDevice, kIsWaitedFor, kHost, kWaits };

bool on_device(const Plan& plan, const std::vector<BufferId>& buffers) {
  return std::any_of(buffers.begin(), buffers.end(), [&](BufferId id) {
    return !is_host_memory(plan.buffers[id].encoding.device);
  });
}

}  // namespace

std::vector<size_t> overlapped_order(const Plan& plan) {
  const size_t count = plan.steps.size();
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> writer(plan.buffers.size(), kNone);
  for (size_t s = 0; s < count; ++s)
    for (BufferId id : plan.steps[s].outputs) writer[id] = s;
  std::vector<std::vector<size_t>> sources(count), readers(count);
  std::vector<size_t> missing(count, 0);
  for (size_t s = 0; s < count; ++s)
    for (BufferId id : plan.steps[s].inputs)
      if (writer[id] != kNone) {
        sources[s].push_back(writer[id]);
        readers[writer[id]].push_back(s);
        ++missing[s];
      }

  std::vector<Urgency> urgency(count, Urgency::kHost);
  for (size_t s = count; s-- > 0;) {
    const Step& step = plan.steps[s];
    if (!is_host_memory(step.device) || on_device(plan, step.outputs)) {
      urgency[s] = Urgency::kStartsDevice;
    } else if (urgency[s] != Urgency::kIsWaitedFor && on_device(plan, step.inputs)) {
      urgency[s] = Urgency::kWaits;
    }
    // Steps stand in an order that they can run in: all readers were looked at.
    if (urgency[s] <= Urgency::kIsWaitedFor)
      for (size_t source : sources[s])
        urgency[source] = std::min(urgency[source], Urgency::kIsWaitedFor);
  }

  using Entry = std::pair<Urgency, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t s = 0; s < count; ++s)
    if (missing[s] == 0) ready.push({urgency[s], s});
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t s = ready.top().second;
    ready.pop();
    order.push_back(s);
    for (size_t reader : readers[s])
      if (--missing[reader] == 0) ready.push({urgency[reader], reader});
  }
  return order;
}

}  // namespace collage
