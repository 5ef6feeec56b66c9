// Steps of a program on several devices: the order to run them in, and what they take so. The host
// runs one step after the other. A device is given steps by the host, which does not wait for them;
// it runs them in the order in which it was given them.
#pragma once

#include <vector>

#include "runtime/encoding.h"

namespace collage {

struct DeviceStep {
  std::vector<size_t> sources;  // steps whose results it reads, all before it
  VirtualDevice device = {};    // that runs it
  // Of a step of the host: whether it reads a device's memory, and so waits for all that the device
  // was given, and whether it writes some.
  VirtualDevice reads = {}, writes = {};
  double seconds = 0;

  bool is_on_host() const { return is_host_memory(device); }
  bool waits() const { return is_on_host() && !is_host_memory(reads); }
};

// Positions of the steps, in the order to run them in: each device is given its work as early as it
// can be, and the host waits as late as it can, so that branches on different devices run side by
// side. Among steps that may come next, in this order,
//
//   those that run on another device than the host, or write its memory,
//   those that such a step waits for,
//   those on the host,
//   those on the host that wait for a device;
//
// and among equals as they stand.
std::vector<size_t> overlapped_order(const std::vector<DeviceStep>& steps);

// From the first step's begin to the last one's end, in that order.
double overlapped_seconds(const std::vector<DeviceStep>& steps);

}  // namespace collage
