#include "search/device_steps.h"

#include <algorithm>
#include <map>
#include <queue>

namespace collage {

namespace {

enum class Urgency { kStartsDevice, kIsWaitedFor, kHost, kWaits };

}  // namespace

std::vector<size_t> overlapped_order(const std::vector<DeviceStep>& steps) {
  const size_t count = steps.size();
  std::vector<std::vector<size_t>> readers(count);
  std::vector<size_t> missing(count, 0);
  for (size_t s = 0; s < count; ++s)
    for (size_t source : steps[s].sources) {
      readers[source].push_back(s);
      ++missing[s];
    }

  std::vector<Urgency> urgency(count, Urgency::kHost);
  for (size_t s = count; s-- > 0;) {
    const DeviceStep& step = steps[s];
    if (!step.is_on_host() || !is_host_memory(step.writes)) {
      urgency[s] = Urgency::kStartsDevice;
    } else if (urgency[s] != Urgency::kIsWaitedFor &&
               (step.waits() ||
                std::any_of(step.sources.begin(), step.sources.end(),
                            [&](size_t source) { return !steps[source].is_on_host(); }))) {
      urgency[s] = Urgency::kWaits;
    }
    // Steps stand in an order that they can run in: all readers were looked at.
    if (urgency[s] <= Urgency::kIsWaitedFor)
      for (size_t source : step.sources)
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

double overlapped_seconds(const std::vector<DeviceStep>& steps) {
  const auto key = [](const VirtualDevice& device) { return std::pair(device.device, device.id); };
  std::map<std::pair<std::string, int>, double>
      free_at;  // when a device has done what it was given
  std::vector<double> done(steps.size(), 0);
  double host = 0;
  for (size_t s : overlapped_order(steps)) {
    const DeviceStep& step = steps[s];
    double begin = host;
    if (step.waits()) begin = std::max(begin, free_at[key(step.reads)]);
    if (!step.is_on_host()) begin = std::max(begin, free_at[key(step.device)]);
    for (size_t source : step.sources) begin = std::max(begin, done[source]);
    done[s] = begin + step.seconds;
    (step.is_on_host() ? host : free_at[key(step.device)]) = done[s];
  }
  double end = host;
  for (const auto& [device, seconds] : free_at) end = std::max(end, seconds);
  return end;
}

}  // namespace collage
