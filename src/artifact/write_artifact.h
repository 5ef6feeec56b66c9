// From a plan to a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artifact/zip.h"
#include "runtime/plan.h"

namespace collage {

// `more`: entries that running does not read, the module and the report. kUnsupported, naming the
// step and its target, where a kernel cannot be saved.
Status write_artifact(const std::filesystem::path& path, const Plan& plan, int threads,
                      const std::string& model, std::vector<ZipEntry> more);

}  // namespace collage
