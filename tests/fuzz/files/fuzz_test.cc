// Files beside models: some inputs of every target; long_fuzz_test.cc runs 20,000 of each.
#include "fuzz/fuzz.h"

#include <gtest/gtest.h>

namespace collage::fuzz {
namespace {

constexpr int kInputs = 400;

TEST(Fuzz, PartitionConfig) { run(partition_config(), kInputs); }
TEST(Fuzz, Database) { run(database(), kInputs); }
TEST(Fuzz, Reports) { run(reports(), kInputs); }
TEST(Fuzz, Artifacts) { run(artifacts(), kInputs); }

}  // namespace
}  // namespace collage::fuzz
