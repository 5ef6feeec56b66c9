// Replaces declared names of devices in a module by their numbers.
#pragma once

#include "ir/module.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// Acts on on_device and device_copy in the module's functions.
Result<Module> with_device_numbers(Module module, const DeclaredDevices& devices);

}  // namespace collage
