// Orders steps of a program on several devices and computes their time. The host runs one step
// after the other. It gives steps to a device without waiting; the device runs them in the order in
// which it got them.
#pragma once

#include <vector>

#include "runtime/encoding.h"

namespace collage {

struct DeviceStep {
  std::vector<size_t> sources;  // steps whose results it reads, all before it
  VirtualDevice device = {};    // that runs it
  // For a step of the host: the device whose memory it reads, so that it waits for all work given
  // to it, and the device whose memory it writes. It waits for steps of a CPU device by its
  // sources.
  VirtualDevice reads = {}, writes = {};
  double seconds = 0;

  bool is_on_host() const { return device == VirtualDevice{}; }
  bool waits() const { return is_on_host() && !is_host_memory(reads); }
};

// Returns positions of the steps, in the order to run them in: each device gets its work as early
// as possible, and the host waits as late as possible, so that branches on different devices run
// side by side. Among steps that may come next, in this order,
//
//   those that run on another device than the host, or write its memory,
//   those that such a step waits for,
//   those on the host,
//   those on the host that wait for a device;
//
// and among equals in the given order.
std::vector<size_t> overlapped_order(const std::vector<DeviceStep>& steps);

// Returns the time from the first step's begin to the last one's end, in that order.
double overlapped_seconds(const std::vector<DeviceStep>& steps);

}  // namespace collage
