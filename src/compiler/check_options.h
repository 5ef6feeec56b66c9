// Refuses options that contradict each other or do not fit the model, before any work is done.
#pragma once

#include <collage/collage.h>

namespace collage {

// kUsage, or kBadModel for inputs that are not the model's.
Status check_options(const Model& model, const ProgramOptions& options);

}  // namespace collage
