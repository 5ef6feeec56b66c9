// From a file to a plan that runs here: the host and the kernels' libraries are what the manifest
// asks for, and every entry that is read fits its checksum.
#pragma once

#include <memory>

#include "artifact/artifact_file.h"
#include "runtime/plan.h"

namespace collage {

struct LoadedArtifact {
  std::shared_ptr<ArtifactFile> file;
  std::shared_ptr<const Plan> plan;
  size_t packed_bytes = 0;  // of constants in their final form
  int threads() const { return file->manifest().threads; }
};

// kUnavailable: it was made for another version or processor, or needs a library that is not here;
// kBadModel: it is damaged.
Result<LoadedArtifact> load_artifact(std::shared_ptr<ArtifactFile> file);

}  // namespace collage
