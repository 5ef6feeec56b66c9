// The tests of this room; with other arguments, a process that runs cases (case_processes.h).
#include <gtest/gtest.h>

#include "conformance/case_processes.h"

int main(int argc, char** argv) {
  if (collage::is_case_process(argc, argv)) return collage::run_case_process(argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
