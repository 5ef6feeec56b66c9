// Finds the measuring worker's program: the `collage` command, which has a hidden sub-command for
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

// `given` (may be empty), else $COLLAGE_WORKER, else this very program when it is `collage`, else
// `collage` beside this library or in the bin folder next to it, else on PATH.
Result<std::vector<std::string>> worker_command(const std::filesystem::path& given);

}  // namespace collage
