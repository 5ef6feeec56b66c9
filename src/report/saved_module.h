// The model inside an artifact: its module as text, its weights beside it; for a model of half
// precision also the imported form, which its programs are compared with (model_reference.h). Runs
// do not read it; it serves to compile again, or to check a program.
#pragma once

#include <vector>

#include "artifact/artifact_file.h"
#include "artifact/zip.h"
#include "compiler/compile.h"

namespace collage {

Result<std::vector<ZipEntry>> module_entries(const Model& model);

// kUnread: the weights are neither read nor checked, and take no memory; there is no `in_halves`,
// and the model must not be computed. For callers that need the model's types alone.
enum class EmbeddedWeights { kRead, kUnread };
Result<Model> embedded_model(ArtifactFile& file, EmbeddedWeights wanted = EmbeddedWeights::kRead);

}  // namespace collage
