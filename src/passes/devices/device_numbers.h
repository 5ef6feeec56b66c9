// Devices by number, where a module states them by the names that they were declared with.
#pragma once

#include "ir/module.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// In on_device and device_copy of the module's functions.
Result<Module> with_device_numbers(Module module, const DeclaredDevices& devices);

}  // namespace collage
