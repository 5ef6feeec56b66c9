// Device planning (TVM's RFC 0038): from constraints on some values to a place for every value, by
// unification, as a pass from module to module.
//
//   - Inputs and results of an operator lie on one device in one memory scope, and so do the
//     parameters and results of a function and the values that calls pass. Fields of tuples are
//     separate. Constants lie wherever they are used.
//   - on_device and device_copy (ops/placement.h) constrain their operand and their result, which
//     may be in different places. So do calls of functions whose attributes "param_devices" and
//     "result_devices" state where they take and give values, if nothing else agrees.
//   - A domain that constraints leave open goes to the first declared device that fits, one
//     without any constraint to the fallback.
//
// The planned module holds no on_device. It holds one device_copy for each value and each place
// that it is used in besides its own, and functions that touch more than the fallback have both
// attributes, for every parameter and result. Planning it again gives the same module, also after
// passes that keep its copies.
#pragma once

#include <unordered_map>

#include "base/result.h"
#include "ir/module.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// kBadModel: constraints contradict each other, with the two sites; kUnavailable: a device is not
// declared.
Result<Module> plan_devices(const Module& module, const DeclaredDevices& devices);

// Where each call of an operator runs, placements aside.
using KernelDevices = std::unordered_map<const ExprNode*, PlannedDevice>;
Result<KernelDevices> kernel_devices(const Module& module, const DeclaredDevices& devices);

}  // namespace collage
