// Files beside models: 20,000 inputs of every target.
#include <gtest/gtest.h>

#include "fuzz/fuzz.h"

namespace collage::fuzz {
namespace {

constexpr int kInputs = 20'000;

TEST(LongFuzz, PartitionConfig) { run(partition_config(), kInputs); }
TEST(LongFuzz, Database) { run(database(), kInputs); }
TEST(LongFuzz, Reports) { run(reports(), kInputs); }
TEST(LongFuzz, Artifacts) { run(artifacts(), kInputs); }

}  // namespace
}  // namespace collage::fuzz
