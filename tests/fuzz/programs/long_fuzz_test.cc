#include <gtest/gtest.h>

#include "fuzz/fuzz.h"

namespace collage::fuzz {
namespace {

TEST(LongFuzz, Programs) { run(programs(), 20'000); }
TEST(LongFuzz, StagedArtifacts) { run(staged_artifacts(), 20'000); }

}  // namespace
}  // namespace collage::fuzz
