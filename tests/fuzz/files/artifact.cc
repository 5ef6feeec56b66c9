// Artifacts as `collage run` and libcollage_runtime load them (mutate_artifact.h).
#include <gtest/gtest.h>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "artifact/load_artifact.h"
#include "artifact/signing_keys.h"
#include "artifact/tiny_plan.h"
#include "artifact/zip.h"
#include "fuzz/files/library_plans.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_artifact.h"
#include "runtime/executor.h"

namespace collage::fuzz {
namespace {

// The tiny plan's, and those of kernels of libraries.
const std::vector<ArtifactParts>& artifact_seeds() {
  static const std::vector<ArtifactParts> made = [] {
    std::vector<ArtifactParts> result = {parts_of(testing::saved_tiny_plan())};
    for (SavedPlans& saved : saved_library_plans()) result.push_back(parts_of(std::move(saved)));
    return result;
  }();
  return made;
}

const std::vector<std::string>& files() {
  static const std::vector<std::string> made = [] {
    std::vector<std::string> result;
    for (const ArtifactParts& parts : artifact_seeds()) result.push_back(written(parts));
    return result;
  }();
  return made;
}

std::string other_file(Random& random) {
  if (!random.one_in(3)) return rewritten(random.pick(artifact_seeds()), random);
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
