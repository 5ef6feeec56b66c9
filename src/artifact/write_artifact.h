// Writes a plan to a file, reads it back, and publishes it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artifact/saved_plan.h"
#include "artifact/zip.h"
#include "base/processor.h"
#include "runtime/plan.h"

namespace collage {

// What the manifest states of a plan besides.
struct PlanFacts {
  int threads = 1;
  std::string model;  // the file's name
  double max_error = 0;
  bool any_threads = false;                      // threads were not chosen
  std::optional<SigningKey> key = std::nullopt;  // that signs the file
  // Of the processor that kernels were compiled for.
  std::vector<std::string> features = processor_features();
};

// `more`: entries that running does not read, the module and the report. kUnsupported, naming the
// step and its target: a kernel cannot be saved.
Status write_artifact(const std::filesystem::path& path, const Plan& plan, const PlanFacts& facts,
                      std::vector<ZipEntry> more);
// Does the same with what was saved already.
Status write_artifact(const std::filesystem::path& path, SavedPlans saved, const PlanFacts& facts,
                      std::vector<ZipEntry> more);

}  // namespace collage
