// The public programs of a file that is open already; errors are those of their `load`.
#pragma once

#include <collage/artifact.h>
#include <collage/dynamic_artifact.h>

#include <memory>

#include "artifact/artifact_file.h"

namespace collage {

Result<Artifact> open_artifact(std::shared_ptr<ArtifactFile> file);
Result<DynamicArtifact> open_dynamic_artifact(std::shared_ptr<ArtifactFile> file);

}  // namespace collage
