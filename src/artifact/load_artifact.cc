#include "artifact/load_artifact.h"

#include <utility>

#include "artifact/kernel_libraries.h"
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

Status check_requirements(const Manifest& manifest) {
  TRY(check_host(manifest));
  return check_loaders(manifest);
}

Status check_loaded_by(std::string_view loader, const Manifest& manifest) {
  const auto [right, held] =
      manifest.has_stages()            ? std::pair("Program::compile", "model that runs in stages")
      : manifest.has_specialisations() ? std::pair("Program::load", "program of several shapes")
                                       : std::pair("Program::load", "program of fixed shapes");
  if (loader == right) return {};
  return usage_error("it holds a {}, which {} takes", held, right);
}

Result<LoadedPlan> load_plan_of(ArtifactFile& file, const std::string& entry) {
  const EntryReader reader = [&](const std::string& name) { return file.entry(name); };
  const int threads = file.threads();
  const TeamScope scope(threads);
  Result<LoadedPlan> loaded = without_exceptions([&] { return load_plan(reader, entry, threads); });
  // What kernels were made of is not read again; weights are, in each run.
  for (const ManifestEntry& made_of : file.manifest().entries)
    if (made_of.name != kWeightsEntry) file.forget(made_of.name);
  return loaded;
}

Result<LoadedArtifact> load_artifact(std::shared_ptr<ArtifactFile> file) {
  return without_exceptions([&]() -> Result<LoadedArtifact> {
    TRY(check_requirements(file->manifest()));
    TRY(check_loaded_by("Program::load", file->manifest()));
    LoadedPlan loaded = TRY(load_plan_of(*file, kPlanEntry));
    return LoadedArtifact{std::move(file), std::move(loaded.plan), loaded.packed_bytes};
  });
}

}  // namespace collage
