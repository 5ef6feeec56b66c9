// The tests of this folder; called with "worker", a measuring worker that knows their functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "backend/targets/backends.h"
#include "measure/worker_loop.h"
#include "modules/external_functions.h"

int main(int argc, char** argv) {
  collage::testing::register_external_functions();
  collage::register_all();
  if (argc == 2 && std::string_view(argv[1]) == "worker") return collage::run_worker();
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
