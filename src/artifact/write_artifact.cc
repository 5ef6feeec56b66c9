#include "artifact/write_artifact.h"

#include "artifact/processor_features.h"
#include "artifact/saved_plan.h"
#include "collage/version.h"

namespace collage {

Status write_artifact(const std::filesystem::path& path, const Plan& plan, int threads,
                      const std::string& model, std::vector<ZipEntry> more) {
  SavedPlan saved = TRY(save_plan(plan, threads));
  Manifest manifest;
  manifest.version = COLLAGE_VERSION;
  manifest.model = model;
  manifest.threads = threads;
  manifest.features = processor_features();
  manifest.loaders = std::move(saved.loaders);
  std::vector<ZipEntry> entries = std::move(saved.entries);
  entries.insert(entries.end(), more.begin(), more.end());
  return write_zip(path, entries, std::move(manifest));
}

}  // namespace collage
