#include "artifact/load_artifact.h"

#include "artifact/kernel_libraries.h"
#include "artifact/saved_plan.h"
#include "base/no_exceptions.h"
#include "base/printable.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

Status check_loaders(const Manifest& manifest) {
  for (const auto& [name, version] : manifest.loaders) {
    const KernelLoader* loader = TRY(find_kernel_library(name));
    if (loader->version != version)
      return error(ErrorCode::kUnavailable, "its kernels of {} are of version {}; here is {}",
                   printable(name), printable(version), loader->version);
  }
  return {};
}

}  // namespace

Result<LoadedArtifact> load_artifact(std::shared_ptr<ArtifactFile> file) {
  return without_exceptions([&]() -> Result<LoadedArtifact> {
    const Manifest& manifest = file->manifest();
    TRY(check_host(manifest));
    TRY(check_loaders(manifest));
    const EntryReader reader = [&](const std::string& name) { return file->entry(name); };
    Result<LoadedPlan> loaded = internal_error("nothing was loaded");
    run_with_team(manifest.threads, [&] {
      loaded = without_exceptions([&] { return load_plan(reader, manifest.threads); });
    });
    LoadedPlan plan = TRY(std::move(loaded));
    // What kernels were made of is not read again; weights are, in each run.
    for (const ManifestEntry& entry : manifest.entries)
      if (entry.name != kWeightsEntry) file->forget(entry.name);
    return LoadedArtifact{file, std::move(plan.plan), plan.packed_bytes};
  });
}

}  // namespace collage
