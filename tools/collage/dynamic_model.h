// Models whose shapes are not known before they run (collage/dynamic.h): what sub-commands do with
// them.
#pragma once

#include "options.h"

namespace collage::tool {

// Whether a model that could not be loaded can be run in stages.
bool is_dynamic(const SharedOptions& options, const Status& failure);

Status run_dynamic(const SharedOptions& options);
// Against the reference interpreter.
Status verify_dynamic(const SharedOptions& options);

}  // namespace collage::tool
