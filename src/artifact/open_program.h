// Opens the public programs of a file; errors are those of their `load`.
#pragma once

#include <collage/artifact.h>
#include <collage/dynamic_artifact.h>

#include <memory>

#include "artifact/artifact_file.h"

namespace collage {

// `threads`: as of Artifact::load.
Result<Artifact> open_artifact(Result<std::shared_ptr<ArtifactFile>> file, int threads = 0);
Result<DynamicArtifact> open_dynamic_artifact(Result<std::shared_ptr<ArtifactFile>> file,
                                              int threads = 0);

}  // namespace collage
