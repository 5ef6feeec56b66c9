// Devices and partitioning (TVM's RFC 0038): what may run on a device is annotated by a target's
// rule, devices are planned (passes/devices/plan_devices.h), and what is together on one is hoisted
// into a function of its own.
#pragma once

#include "base/regex.h"
#include "ir/module.h"
#include "partition/candidate.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// on_device, with the device of the spec's target, around every call in the candidates of its rule:
// operators that a predicate accepts, or whatever a pattern matches. Of candidates that overlap,
// the one with the most nodes stays. The same pointer where there is none.
Result<Function> annotate_devices(const Function& function,
                                  const std::shared_ptr<const PartitionSpec>& spec);

// The same around calls that come from a node in whose name an expression is found; of several
// that match, the first counts. kUsage where one matches nothing.
struct DeviceWish {
  Regex origin;
  DeviceConstraint device;
  std::string text;                                        // for messages
  static Result<DeviceWish> parse(std::string_view text);  // "encoder.*=gpu:1"
};
Result<Function> annotate_devices(const Function& function, const std::vector<DeviceWish>& wishes);

// Every largest part of a planned module's functions that is on one device, but for those on the
// fallback, as a global function whose attributes state its devices; its name begins with
// "collage_" and the device. The module is planned as before.
Result<Module> partition_by_device(const Module& planned, const DeclaredDevices& devices);

}  // namespace collage
