// States the devices of a module in one way: by kind and number.
#pragma once

#include "ir/module.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// Replaces declared names by numbers in on_device, device_copy, and the attributes of functions,
// and adds the device of a target that is stated alone. kBadModel: a target is of another device.
Result<Module> with_device_numbers(Module module, const DeclaredDevices& devices);

}  // namespace collage
