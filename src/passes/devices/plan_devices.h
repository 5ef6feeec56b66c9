// Device planning (TVM's RFC 0038): from constraints on some values to a place for every value, by
// unification, as a pass from module to module.
//
//   - What an operator reads and gives lies on one device in one memory scope, and so do the
//     parameters and results of a function and what calls hand over. Fields of tuples are apart.
//     Constants lie wherever they are used.
//   - on_device and device_copy (ops/placement.h) constrain their operand and their result and let
//     these be in different places. So do calls of functions whose attributes "param_devices" and
//     "result_devices" say where they take and give values, if nothing else agrees.
//   - A domain that constraints leave open goes to the first declared device that fits, one
//     without any constraint to the fallback.
//
// The planned module holds no on_device. It holds one device_copy for each value and each place
// that it is used in besides its own, and functions that touch more than the fallback have both
// attributes, for every parameter and result. Planning it again gives the same module, also after
// passes that keep to its copies.
#pragma once

#include <unordered_map>

#include "base/result.h"
#include "ir/module.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// kBadModel for constraints that contradict each other, with the two sites; kUnavailable for a
// device that is not declared.
Result<Module> plan_devices(const Module& module, const DeclaredDevices& devices);

// Where each call of an operator runs, placements aside.
using KernelDevices = std::unordered_map<const ExprNode*, PlannedDevice>;
Result<KernelDevices> kernel_devices(const Module& module, const DeclaredDevices& devices);

// How often the module copies a value from place to place.
size_t count_device_copies(const Module& module);

}  // namespace collage
