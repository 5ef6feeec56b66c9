// Loads a plan from a file: checks the host and the kernels' libraries against the manifest, and
// every entry that is read against its checksum.
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

// Called before any load from a file. kUnavailable: it was made for another version or processor,
// or needs a library that is not here.
Status check_requirements(const Manifest& manifest);
// kUsage, naming the function that takes the file, unless that is `loader`: "Program::load" or
// "Program::compile".
Status check_loaded_by(std::string_view loader, const Manifest& manifest);
// Loads the plan in that entry; kBadModel: it is damaged.
Result<LoadedPlan> load_plan_of(ArtifactFile& file, const std::string& entry);

// Does both, for a file that holds one plan.
Result<LoadedArtifact> load_artifact(std::shared_ptr<ArtifactFile> file);

}  // namespace collage
