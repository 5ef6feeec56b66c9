// The tests of this room; called with "worker", a measuring worker that knows the backend that
// misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "compiler/fault_backend.h"
#include "measure/worker_loop.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    collage::testing::register_all_and_faulty();
    return collage::run_worker();
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
