// The model inside an artifact: its module as text, its weights beside it. Nothing that runs reads
// it; it is there to be compiled again, or to check a program against.
#pragma once

#include <vector>

#include "artifact/artifact_file.h"
#include "artifact/zip.h"
#include "compiler/compile.h"

namespace collage {

Result<std::vector<ZipEntry>> module_entries(const Model& model);
Result<Model> embedded_model(ArtifactFile& file);

}  // namespace collage
