// From a file to a plan that runs here: the host and the kernels' libraries are what the manifest
// asks for, and every entry that is read fits its checksum.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "artifact/artifact_file.h"
#include "artifact/saved_plan.h"
#include "runtime/plan.h"

namespace collage {

struct LoadedArtifact {
  std::shared_ptr<ArtifactFile> file;
  std::shared_ptr<const Plan> plan;
  size_t packed_bytes = 0;  // of constants in their final form
  int threads() const { return file->threads(); }
};

// What all that load from a file do first: kUnavailable where it was made for another version or
// processor, or needs a library that is not here.
Status check_requirements(const Manifest& manifest);
// kUsage, naming what loads the file, unless that is `loader`: "Artifact", "DynamicArtifact" or
// "DynamicProgram".
Status check_loaded_by(std::string_view loader, const Manifest& manifest);
// The plan in that entry; kBadModel: it is damaged.
Result<LoadedPlan> load_plan_of(ArtifactFile& file, const std::string& entry);

// Both; kUsage where the file holds specialisations (specialisations.h).
Result<LoadedArtifact> load_artifact(std::shared_ptr<ArtifactFile> file);

}  // namespace collage
