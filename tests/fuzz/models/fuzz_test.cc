// Models, in every form they come in: some inputs of every target; long_fuzz_test.cc runs 20,000 of
// each.
#include "fuzz/fuzz.h"

#include <gtest/gtest.h>

namespace collage::fuzz {
namespace {

constexpr int kInputs = 400;

TEST(Fuzz, Importer) { run(importer(), kInputs); }
TEST(Fuzz, Relay) { run(relay(), kInputs); }
TEST(Fuzz, TensorPrograms) { run(tensor_programs(), kInputs); }

// An input depends on its number alone.
TEST(Fuzz, InputsCanBeMadeAgain) {
  const FuzzTarget target = tensor_programs();
  for (uint64_t number : {1, 2, 20'000}) {
    Random one(number), other(number);
    EXPECT_EQ(target.make(one), target.make(other));
  }
}

}  // namespace
}  // namespace collage::fuzz
