#include "artifact/write_artifact.h"

#include <elf.h>

#include <algorithm>

#include "artifact/artifact_file.h"
#include "base/output_file.h"
#include "base/processor.h"
#include "collage/version.h"

namespace collage {

namespace {

Status check_readable(const std::filesystem::path& path) {
  const std::shared_ptr<ArtifactFile> file = TRY(ArtifactFile::open(path));
  for (const ManifestEntry& entry : file->manifest().entries) TRY(file->entry(entry.name));
  return file->check_hashes();
}

// Whether kernels are of code that was compiled for this processor; others make theirs, or see
// themselves whether they can run, where they are loaded.
bool holds_code(const SavedPlans& saved) {
  return std::any_of(saved.entries.begin(), saved.entries.end(), [](const ZipEntry& entry) {
    return entry.name.starts_with("objects/") && entry.content.text().starts_with(ELFMAG);
  });
}

}  // namespace

Status write_artifact(const std::filesystem::path& path, const Plan& plan, const PlanFacts& facts,
                      std::vector<ZipEntry> more) {
  PlanSaver saver(facts.threads);
  TRY(saver.add(kPlanEntry, plan));
  return write_artifact(path, TRY(saver.finish()), facts, std::move(more));
}

Status write_artifact(const std::filesystem::path& path, SavedPlans saved, const PlanFacts& facts,
                      std::vector<ZipEntry> more) {
  Manifest manifest;
  manifest.version = COLLAGE_VERSION;
  manifest.model = facts.model;
  manifest.threads = facts.threads;
  manifest.max_error = facts.max_error;
  manifest.any_threads = facts.any_threads;
  if (holds_code(saved)) manifest.features = code_features(facts.features);
  manifest.loaders = std::move(saved.loaders);
  std::vector<ZipEntry> entries = std::move(saved.entries);
  entries.insert(entries.end(), more.begin(), more.end());
  OutputFile file = TRY(OutputFile::create(path));
  TRY(write_zip(file.temporary(), entries, std::move(manifest), facts.key ? &*facts.key : nullptr)
          .with_context(path.string()));
  const Status status = check_readable(file.temporary());
  if (!status.ok())
    return internal_error("{}: what was written does not read back: {}", path.string(),
                          status.to_string());
  return file.publish();
}

}  // namespace collage
