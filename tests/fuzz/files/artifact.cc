// Artifacts as `collage run` and libcollage_runtime load them: changed bytes, manifests that lie,
// and files whose every checksum fits what somebody wrote into plans, descriptions of kernels and
// weights. Objects stay as they are: what is compiled is code, which nobody can check.
#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "artifact/load_artifact.h"
#include "artifact/signing_keys.h"
#include "artifact/tiny_plan.h"
#include "artifact/write_artifact.h"
#include "artifact/zip.h"
#include "base/files.h"
#include "base/json.h"
#include "collage/version.h"
#include "fuzz/files/library_plans.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "fuzz/mutate_text.h"
#include "runtime/executor.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

SharedBytes held(std::string text) {
  auto holder = std::make_shared<const std::string>(std::move(text));
  return {{holder, holder->data()}, holder->size()};
}

std::string written(const std::vector<ZipEntry>& entries, const Manifest& manifest) {
  static const std::filesystem::path file =
      std::filesystem::path(scratch_folder()) / "made.collage";
  const Status status = write_zip(file, entries, manifest);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return read_file(file).value();
}

// What a file is made of.
struct Parts {
  std::vector<ZipEntry> entries;
  Manifest manifest;
};

Parts parts_of(SavedPlans saved) {
  Parts result{std::move(saved.entries), {}};
  result.manifest.version = COLLAGE_VERSION;
  result.manifest.model = "tiny.onnx";
  result.manifest.loaders = saved.loaders;
  return result;
}

// The tiny plan's, and those of kernels of libraries.
const std::vector<Parts>& artifact_seeds() {
  static const std::vector<Parts> made = [] {
    std::vector<Parts> result = {parts_of(testing::saved_tiny_plan())};
    for (SavedPlans& saved : saved_library_plans()) result.push_back(parts_of(std::move(saved)));
    return result;
  }();
  return made;
}

const std::vector<std::string>& files() {
  static const std::vector<std::string> made = [] {
    std::vector<std::string> result;
    for (const Parts& parts : artifact_seeds())
      result.push_back(written(parts.entries, parts.manifest));
    return result;
  }();
  return made;
}

// A kernel's description is JSON inside of JSON.
std::string changed_plan(json plan, Random& random) {
  if (random.one_in(2)) return changed_json(plan, random);
  json& step = plan["steps"][random.below(plan["steps"].size())];
  step["description"] = changed_json(parse_json(step["description"].get<std::string>()), random);
  return plan.dump(-1, ' ', false, json::error_handler_t::replace);
}

// With another plan, other weights or another manifest, and checksums and a seal that fit.
std::string rewritten(Random& random) {
  Parts changed = random.pick(artifact_seeds());
  ZipEntry& entry = changed.entries[random.below(changed.entries.size())];
  const std::string text(entry.content.text());
  if (entry.name == kPlanEntry || entry.name.starts_with("objects/")) {
    ZipEntry& plan = entry.name == kPlanEntry ? entry : changed.entries.front();
    plan.content = held(changed_plan(parse_json(plan.content.text()), random));
  } else {
    entry.content = held(TextMutator({text + " "}).changed(text, random));
  }
  if (random.one_in(4)) changed.manifest.threads = static_cast<int>(1 + random.below(4));
  return written(changed.entries, changed.manifest);
}

std::string other_file(Random& random) {
  if (!random.one_in(3)) return rewritten(random);
  static const Manifest manifest = read_zip(files().front()).value();
  return testing::damaged(files().front(), manifest, static_cast<uint32_t>(random.below(1u << 30)));
}

Outcome run_artifact(const std::string& input) {
  static const PublicKey key = PublicKey::parse(testing::kPublicKey).value();
  // Nobody signed it.
  EXPECT_FALSE(ArtifactFile::from_memory(input.data(), input.size(), nullptr, key).ok());
  Result<std::shared_ptr<ArtifactFile>> file =
      ArtifactFile::from_memory(input.data(), input.size(), nullptr);
  if (!file.ok()) {
    EXPECT_FALSE(file.status().message().empty());
    return Outcome::kNoSyntax;
  }
  (void)(*file)->check_hashes();
  const Result<LoadedArtifact> loaded = load_artifact(*file);
  if (!loaded.ok()) {
    EXPECT_FALSE(loaded.status().message().empty());
    return Outcome::kRefused;
  }
  Result<Executor> executor = Executor::create_beside(loaded->plan, loaded->threads());
  if (!executor.ok()) return Outcome::kRefused;
  std::vector<Tensor> inputs, outputs(loaded->plan->outputs.size());
  for (const PlanSignature& signature : loaded->plan->inputs)
    inputs.push_back(Tensor::zeros(signature.type.dtype, signature.type.shape));
  return executor->run(inputs, outputs).ok() ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace

FuzzTarget artifacts() { return {"artifacts", files(), other_file, run_artifact}; }

}  // namespace collage::fuzz
