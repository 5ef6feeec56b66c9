// Other programs that are run to make something: found on PATH, waited for, and silent unless they
// fail.
#pragma once

#include <string>
#include <vector>

#include "base/memory_file.h"
#include "base/result.h"

namespace collage {

bool is_on_path(const std::string& tool);

// The command's first word is looked for on PATH. It inherits `files`, under their own paths. Where
// it fails, the error holds the line in which it complained; nothing that it says reaches the
// terminal. kUnavailable where the machine could not run it.
Status run_tool(std::vector<std::string> command, const std::vector<const MemoryFile*>& files = {});

}  // namespace collage
