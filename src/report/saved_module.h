// The model inside an artifact: its module as text, its weights beside it; of a model of half
// precision also as it was imported, which its programs are held to (model_reference.h). Nothing
// that runs reads it; it is there to be compiled again, or to check a program against.
#pragma once

#include <vector>

#include "artifact/artifact_file.h"
#include "artifact/zip.h"
#include "compiler/compile.h"

namespace collage {

Result<std::vector<ZipEntry>> module_entries(const Model& model);

// Running needs none of the weights: where nothing but the model's types is asked for they are
// neither read nor checked, and take no memory; nor is there `in_halves`. Nobody may then compute
// with them.
enum class EmbeddedWeights { kRead, kUnread };
Result<Model> embedded_model(ArtifactFile& file, EmbeddedWeights wanted = EmbeddedWeights::kRead);

}  // namespace collage
