// Partitions by device (TVM's RFC 0038): annotates by a target's rule what may run on a device,
// plans devices (passes/devices/plan_devices.h), and moves what is together on one into a function
// of its own.
#pragma once

#include "base/regex.h"
#include "ir/module.h"
#include "partition/candidate.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// Places on_device, with the device of the spec's target, around every call in the candidates of
// its rule: operators that a predicate accepts, or matches of a pattern. Of overlapping candidates
// the one with the most nodes stays. The same pointer if there is none.
Result<Function> annotate_devices(const Function& function,
                                  const std::shared_ptr<const PartitionSpec>& spec);

// The same for calls that come from a node whose name contains a match of an expression; of several
// that match, the first counts. kUsage: one matches nothing.
struct DevicePin {
  Regex origin;
  DeviceConstraint device;
  std::string text;                                       // for messages
  static Result<DevicePin> parse(std::string_view text);  // "encoder.*=gpu:1"
};
Result<Function> annotate_devices(const Function& function, const std::vector<DevicePin>& pins);

// Makes every largest part of a planned module's functions that is on one device, except the
// fallback unless `all` are wanted, a global function whose attributes state its devices; its name
// begins with "collage_" and the device. The plan stays the same.
Result<Module> partition_by_device(const Module& planned, const DeclaredDevices& devices,
                                   bool all = false);

}  // namespace collage
