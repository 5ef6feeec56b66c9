// Operators that place values on devices, for device planning:
//
//   on_device(x, device="gpu:1")  x itself, to be computed there (constrain_body),
//                                 used there (constrain_result), or both
//   device_copy(x, from="gpu:1", to="cpu:0")  x, copied
//
// Devices are texts of ir/device_constraint.h. To the interpreter both are copies.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/device_constraint.h"
#include "ir/expr.h"

namespace collage {

void register_placement_ops();

// One of these calls as constraints on its operand and on its result.
struct DevicePlacement {
  DeviceConstraint operand, result;
};
std::optional<DevicePlacement> device_placement(const Expr& expr);

// Returns the value with on_device around each tensor of it, as far as `devices`, one for each of
// them, state something: where it is computed, used, or both.
enum class Placed { kComputed, kUsed, kBoth };
Result<Expr> placed(const Expr& value, std::span<const DeviceConstraint> devices, Placed where);

// Returns what a function's attribute "param_devices" or "result_devices" states of so many
// tensors; empty where it has none.
Result<std::vector<DeviceConstraint>> stated_devices(const Function& function,
                                                     std::string_view attribute, size_t tensors);

}  // namespace collage
