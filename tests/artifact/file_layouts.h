// The forms of all JSON texts in an artifact, compared with those of tests/saved_layouts.txt.
#pragma once

#include <gtest/gtest.h>

#include "artifact/artifact_file.h"
#include "saved_layouts.h"

namespace collage::testing {

inline void expect_known_layouts(ArtifactFile& file) {
  SavedLayouts& layouts = SavedLayouts::all();
  const Manifest& manifest = file.manifest();
  layouts.expect_known("manifest", kArtifactFormat, nlohmann::json::parse(manifest_text(manifest)),
                       {"loaders"});
  for (const ManifestEntry& entry : manifest.entries) {
    const bool is_plan = entry.name == kPlanEntry || entry.name.starts_with("plans/");
    const bool is_table = entry.name == kSpecialisationsEntry,
               is_module = entry.name == kModuleEntry, are_stages = entry.name == kStagesEntry;
    if (!is_plan && !is_table && !is_module && !are_stages) continue;
    const SharedBytes text = file.entry(entry.name).value();
    const nlohmann::json value = nlohmann::json::parse(text.text(), nullptr, false);
    if (value.is_discarded()) continue;  // a test's own
    if (is_module) layouts.expect_known("module", kArtifactFormat, value);
    if (are_stages)
      layouts.expect_known(
          "stages", kArtifactFormat, value,
          {"plans", "options.buckets", "options.padding", "options.states", "options.constants"});
    if (is_table)
      layouts.expect_known(
          "specialisations", kArtifactFormat, value,
          {"interface.buckets", "interface.padding", "specialisations.[].conditions",
           "specialisations.[].constants", "specialisations.[].aliases"});
    if (!is_plan) continue;
    layouts.expect_known("plan", kArtifactFormat, value);
    for (const nlohmann::json& step : value["steps"])
      layouts.expect_known_kernel(step["loader"], step["description"]);
  }
}

}  // namespace collage::testing
