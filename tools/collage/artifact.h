// Artifacts (F.collage) in place of models: sub-commands run, time, check and show their contents;
// with --for the model inside is compiled like any other.
#pragma once

#include "artifact/load_artifact.h"
#include "options.h"
#include "report/saved_module.h"

namespace collage::tool {

bool is_artifact(const std::string& path);
// Returns "onednn 50 · native 7", in the order in which they first run.
std::string kernels_of(const Plan& plan);
// Returns whether the sub-command takes its program from an artifact.
inline bool runs_artifact(const SharedOptions& options) {
  return is_artifact(options.model) && options.machine.empty();
}

// Opens the artifact's file and checks the signature that is required.
Result<std::shared_ptr<ArtifactFile>> open_signed(const SharedOptions& options);
Result<Model> load_embedded(const SharedOptions& options);
Result<nlohmann::json> load_embedded_report(const SharedOptions& options);

// Refuses flags that only affect compiling.
Status check_flags(const SharedOptions& options);

// An artifact that is loaded, and the model inside it.
struct OpenedArtifact {
  LoadedArtifact loaded;
  Executor executor;
  Model model;
  double seconds = 0;  // that loading took
  size_t memory = 0;   // bytes that loading took, those of mapped files left out

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  Result<nlohmann::json> report(const std::string& path) const;  // of its compilation
};
// Refuses flags that only affect compiling, and destinations that could not be written. If the
// model's weights are read, every entry of the file is compared with its SHA-256 first.
Result<OpenedArtifact> open_artifact(const SharedOptions& options, EmbeddedWeights weights);

Status run_artifact(const SharedOptions& options);
// `duration` in seconds, unless a number of runs is given.
Status bench_artifact(const SharedOptions& options, double duration);

}  // namespace collage::tool
