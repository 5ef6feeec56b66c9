// Models to programs: some inputs; long_fuzz_test.cc runs 20,000.
#include "fuzz/fuzz.h"

#include <gtest/gtest.h>

namespace collage::fuzz {
namespace {

TEST(Fuzz, Programs) { run(programs(), 60); }

}  // namespace
}  // namespace collage::fuzz
