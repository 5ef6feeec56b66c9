// Passes of device planning over models (collage/passes.h).
#include <collage/passes.h>

#include "choose/candidates.h"
#include "compiler/model_passes.h"
#include "partition/by_device.h"
#include "passes/devices/plan_devices.h"

namespace collage::passes {

namespace {

Result<Module> with_main(Module module, Result<Function> main) {
  module.functions.at("main") = TRY(std::move(main));
  return module;
}

}  // namespace

ModelPass annotate_devices(const std::vector<std::string>& places) {
  return model_pass("annotate_devices", [places](const Model& model) -> Result<Module> {
    std::vector<DevicePin> pins;
    for (const std::string& place : places) pins.push_back(TRY(DevicePin::parse(place)));
    const Module& module = model.impl().module;
    return with_main(module, collage::annotate_devices(module.main(), pins));
  });
}

ModelPass annotate_devices(const ProgramOptions& options) {
  return model_pass("annotate_devices", [options](const Model& model) -> Result<Module> {
    const PartitionSpecPtr spec = TRY(only_toolchain(TRY(choose_targets(options)).specs));
    const Module& module = model.impl().module;
    return with_main(module, collage::annotate_devices(module.main(), spec));
  });
}

ModelPass plan_devices(const std::string& devices) {
  return model_pass("plan_devices", [devices](const Model& model) -> Result<Module> {
    return collage::plan_devices(model.impl().module, TRY(DeclaredDevices::parse(devices)));
  });
}

ModelPass partition_by_device(const std::string& devices, bool all) {
  return model_pass("partition_by_device", [devices, all](const Model& model) -> Result<Module> {
    return collage::partition_by_device(model.impl().module, TRY(DeclaredDevices::parse(devices)),
                                        all);
  });
}

}  // namespace collage::passes
