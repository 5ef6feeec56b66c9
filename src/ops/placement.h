// Where values lie, as devices are planned by (src/passes/devices):
//
//   on_device(x, device="gpu:1")  x itself, with the wish that it is computed there
//   (constrain_body),
//                                 or that it is used there (constrain_result), or both
//   device_copy(x, from="gpu:1", to="cpu:0")  x, copied
//
// Devices are texts of ir/device_constraint.h. To the interpreter both are copies.
#pragma once

#include "ir/device_constraint.h"
#include "ir/expr.h"

namespace collage {

void register_placement_ops();

// A call of one of them as constraints on its operand and on its result.
struct DevicePlacement {
  DeviceConstraint operand, result;
  bool is_copy = false;
};
std::optional<DevicePlacement> device_placement(const Expr& expr);

}  // namespace collage
