// Changes to artifacts: damaged files, and files whose every checksum fits what somebody wrote into
// plans, tables, descriptions of kernels and weights. Objects stay as they are: what is compiled is
// code, which nobody can check.
#pragma once

#include <string>
#include <vector>

#include "artifact/saved_plan.h"
#include "artifact/zip.h"
#include "fuzz/random.h"

namespace collage::fuzz {

// What a file is made of.
struct ArtifactParts {
  std::vector<ZipEntry> entries;
  Manifest manifest;
};

ArtifactParts parts_of(SavedPlans saved);
ArtifactParts parts_of(const std::string& file);
// The bytes of the file.
std::string written(const ArtifactParts& parts);

// With another plan, table, model, other weights or another manifest, and checksums and a seal that
// fit.
std::string rewritten(ArtifactParts parts, Random& random);

}  // namespace collage::fuzz
