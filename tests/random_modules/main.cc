// The tests of random modules; called with "worker", a measuring worker. Both know the simulated
// accelerator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "backend/targets/backends.h"
#include "measure/worker_loop.h"

extern "C" void collage_plugin_register();  // tests/simulated/backend.cc

int main(int argc, char** argv) {
  collage::register_all();
  collage_plugin_register();
  if (argc == 2 && std::string_view(argv[1]) == "worker") return collage::run_worker();
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
