// Tests that compile with all backends and the faulty one: a folder of their own, which holds the
// caches and goes with the test, and options for one thread whose workers are this program.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "collage/collage.h"
#include "compiler/fault_backend.h"

namespace collage::testing {

class CompileTest : public ::testing::Test {
 protected:
  CompileTest() {
    namespace fs = std::filesystem;
    register_all_and_faulty();
    folder_ = fs::temp_directory_path() / ("collage_compile_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", (folder_ / "cache").c_str(), 1);
    options_.threads = 1;
    options_.worker = fs::read_symlink("/proc/self/exe");
  }
  ~CompileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  ProgramOptions options_;
};

}  // namespace collage::testing
