// The tests of this folder; called with "worker", the process that tries kernels.
#include <gtest/gtest.h>

#include <string_view>

#include "backend/targets/backends.h"
#include "measure/worker_loop.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    collage::register_all();
    return collage::run_worker();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
