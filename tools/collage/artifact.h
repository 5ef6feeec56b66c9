// Artifacts (F.collage) in place of models: what they hold is run, timed, checked and shown as it
// is; with --recompile the model inside is compiled like any other.
#pragma once

#include "options.h"

namespace collage::tool {

bool is_artifact(const std::string& path);
// Whether the sub-command takes its program from an artifact.
inline bool runs_artifact(const SharedOptions& options) {
  return is_artifact(options.model) && !options.recompile;
}

Result<Model> load_embedded(const std::string& path);
Result<nlohmann::json> load_embedded_report(const std::string& path);

Status run_artifact(const SharedOptions& options);
// `duration` in seconds, unless a number of runs is given.
Status bench_artifact(const SharedOptions& options, double duration, int iterations, int warm_ups);
// Against the reference interpreter on the model inside; or, where `expect` names a folder, against
// the outputs there.
Status verify_artifact(const SharedOptions& options, const std::string& expect);

}  // namespace collage::tool
