// Runs other programs: found on PATH, waited for, and silent unless they fail.
#pragma once

#include <string>
#include <vector>

#include "base/memory_file.h"
#include "base/result.h"

namespace collage {

bool is_on_path(const std::string& tool);

// Looks for the command's first word on PATH. It inherits `files`, under their own paths. On
// failure the error holds the line of its complaint; its output never reaches the terminal.
// kUnavailable: the machine could not run it.
Status run_tool(std::vector<std::string> command, const std::vector<const MemoryFile*>& files = {});

}  // namespace collage
