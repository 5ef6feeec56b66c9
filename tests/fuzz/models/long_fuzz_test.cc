// Models, in every form they come in: 20,000 inputs of every target.
#include <gtest/gtest.h>

#include "fuzz/fuzz.h"

namespace collage::fuzz {
namespace {

constexpr int kInputs = 20'000;

TEST(LongFuzz, Importer) { run(importer(), kInputs); }
TEST(LongFuzz, Relay) { run(relay(), kInputs); }
TEST(LongFuzz, TensorPrograms) { run(tensor_programs(), kInputs); }

}  // namespace
}  // namespace collage::fuzz
