// A compiled program as an artifact: its plan, the model it was compiled from and its report.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "artifact/artifact_file.h"
#include "compiler/compile.h"

namespace collage {

// `signing_key` as in Program::save.
Status save_program(const Program& program, const Model& model, const nlohmann::json& report,
                    const std::filesystem::path& path, const std::string& signing_key = "");

// kBadModel: it is no report of this version.
Result<nlohmann::json> embedded_report(ArtifactFile& file);

}  // namespace collage
