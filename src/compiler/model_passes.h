// What passes over models are made of (collage/passes.h).
#pragma once

#include <collage/passes.h>

#include "ir/module.h"
#include "partition/gather.h"

namespace collage {

// A pass over a module that verified passes or the user made.
ModelPass model_pass(std::string name, std::function<Result<Module>(const Model&)> run);

// The one besides the host. kUsage: there are none, or several.
Result<PartitionSpecPtr> only_toolchain(const std::vector<PartitionSpecPtr>& specs);

}  // namespace collage
