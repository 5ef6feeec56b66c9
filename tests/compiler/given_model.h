// A fixture: a model in Relay's text form, and options to compile it with a database of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "backend/targets/backends.h"
#include "compiler/compile.h"
#include "compiler/plan_text.h"
#include "ir/text_parser.h"

namespace collage::testing {

class GivenModel : public ::testing::Test {
 protected:
  explicit GivenModel(const char* text) : text_(text) {}
  void SetUp() override {
    register_all();
    folder_ = std::filesystem::temp_directory_path() /
              ("collage_given_model_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    options_.targets = {"native", "onednn"};
    options_.threads = 1;
    options_.worker = std::filesystem::read_symlink("/proc/self/exe");
    options_.database = folder_ / "costs.db";
    options_.effort = Effort::kFast;
    Result<Module> parsed = parse_module(text_);
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    given_ = *parsed;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A plan's text, and of each step what that leaves out.
  static std::string described(const Plan& plan) {
    std::string text = to_text(plan);
    for (const Step& step : plan.steps)
      text += step.target + " " + std::to_string(step.kernel->workspace_bytes()) + "\n";
    return text;
  }

  std::filesystem::path folder_;
  ProgramOptions options_;
  Module given_;

 private:
  const char* text_;
};

}  // namespace collage::testing
