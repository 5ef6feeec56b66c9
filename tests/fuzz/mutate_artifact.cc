#include "fuzz/mutate_artifact.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/artifact_file.h"
#include "base/files.h"
#include "base/json.h"
#include "collage/version.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "fuzz/mutate_text.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

SharedBytes held(std::string text) {
  auto holder = std::make_shared<const std::string>(std::move(text));
  return {{holder, holder->data()}, holder->size()};
}

bool is_plan(const ZipEntry& entry) {
  return entry.name == kPlanEntry || entry.name.starts_with("plans/");
}

// A kernel's description is JSON inside of JSON.
std::string changed_plan(json plan, Random& random) {
  if (random.one_in(2) || plan["steps"].empty()) return changed_json(plan, random);
  json& step = plan["steps"][random.below(plan["steps"].size())];
  step["description"] = changed_json(parse_json(step["description"].get<std::string>()), random);
  return plan.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

ArtifactParts parts_of(SavedPlans saved) {
  ArtifactParts result{std::move(saved.entries), {}};
  result.manifest.version = COLLAGE_VERSION;
  result.manifest.model = "tiny.onnx";
  result.manifest.loaders = saved.loaders;
  return result;
}

ArtifactParts parts_of(const std::string& file) {
  const SharedBytes bytes = held(file);
  const std::shared_ptr<ArtifactFile> opened =
      ArtifactFile::from_memory(bytes.data.get(), bytes.bytes, bytes.data).value();
  ArtifactParts result{{}, opened->manifest()};
  for (const ManifestEntry& entry : opened->manifest().entries)
    result.entries.push_back({entry.name, held(std::string(opened->entry(entry.name)->text()))});
  return result;
}

std::string written(const ArtifactParts& parts) {
  static const std::filesystem::path file =
      std::filesystem::path(scratch_folder()) / "made.collage";
  const Status status = write_zip(file, parts.entries, parts.manifest);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return read_file(file).value();
}

std::string rewritten(ArtifactParts parts, Random& random) {
  std::vector<ZipEntry*> plans;
  for (ZipEntry& entry : parts.entries)
    if (is_plan(entry)) plans.push_back(&entry);
  ZipEntry* entry = &parts.entries[random.below(parts.entries.size())];
  if (entry->name.starts_with("objects/")) entry = random.pick(plans);
  const std::string text(entry->content.text());
  if (is_plan(*entry))
    entry->content = held(changed_plan(parse_json(text), random));
  else if (entry->name.ends_with(".json"))
    entry->content = held(changed_json(parse_json(text), random));
  else
    entry->content = held(TextMutator({text + " "}).changed(text, random));
  if (random.one_in(4)) parts.manifest.threads = static_cast<int>(1 + random.below(4));
  return written(parts);
}

}  // namespace collage::fuzz
