// Models to programs, and files of models in stages: some inputs; long_fuzz_test.cc runs 20,000.
#include "fuzz/fuzz.h"

#include <gtest/gtest.h>

namespace collage::fuzz {
namespace {

TEST(Fuzz, Programs) { run(programs(), 60); }
TEST(Fuzz, StagedArtifacts) { run(staged_artifacts(), 200); }

}  // namespace
}  // namespace collage::fuzz
