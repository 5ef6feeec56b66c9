// Operators that place values on devices, for device planning:
//
//   on_device(x, device="gpu:1")  x itself, to be computed there (constrain_body),
//                                 used there (constrain_result), or both
//   device_copy(x, from="gpu:1", to="cpu:0")  x, copied
//
// Devices are texts of ir/device_constraint.h. To the interpreter both are copies.
#pragma once

#include "ir/device_constraint.h"
#include "ir/expr.h"

namespace collage {

void register_placement_ops();

// One of these calls as constraints on its operand and on its result.
struct DevicePlacement {
  DeviceConstraint operand, result;
};
std::optional<DevicePlacement> device_placement(const Expr& expr);

}  // namespace collage
