// Compiler and worker are two programs: one of another build is refused, in a line that says how
// they differ, and never answers anything.
#include "measure/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "measure/build_identity.h"
#include "measure/planted_kernel.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class WorkerOfAnotherBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::register_host();
    folder_ = fs::temp_directory_path() / ("collage_worker_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    task_.request = TimeRequest{{canonical_text(testing::unary("tanh", {2, 3}))}};
    task_.targets = {"reference"};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A program that says these lines, whatever it is asked.
  Status asked(const std::vector<std::string>& lines, const std::string& then = "sleep 60") {
    const fs::path program = folder_ / "worker";
    std::ofstream script(program);
    script << "#!/bin/sh\ncat >&4 <<'END'\n";
    for (const std::string& line : lines) script << line << "\n";
    script << "END\n" << then << "\n";
    script.close();
    fs::permissions(program, fs::perms::owner_all);
    WorkerLimits limits;
    limits.silence_seconds = 5;
    Worker worker({program.string()}, limits);
    const auto measured = worker.measure(task_);
    refusal_ = measured ? measured->at(0).refusal : "";
    Status status = measured.status();
    EXPECT_EQ(status.to_string().find('\n'), std::string::npos);
    if (status.code() == ErrorCode::kUnavailable) {
      EXPECT_THAT(status.message(), HasSubstr(program.string()));
    }
    return status;
  }
  static std::string hello(const json& identity) { return json{{"hello", identity}}.dump(); }
  // A well-formed answer to the task.
  static std::string answer() {
    TargetCosts costs;
    costs.target = "reference";
    return json{{"done", {to_json(costs)}}}.dump();
  }

  fs::path folder_;
  MeasureTask task_;
  std::string refusal_;  // of the first target, by the last answer
};

TEST_F(WorkerOfAnotherBuild, IsAnsweredToOnceItIsOfThisOne) {
  EXPECT_TRUE(asked({hello(build_identity()), R"({"begin":"x"})", answer()}).ok());
  json more = build_identity();
  more["backends"]["another"] = "1";
  EXPECT_TRUE(asked({hello(more), R"({"begin":"x"})", answer()}).ok());
}

TEST_F(WorkerOfAnotherBuild, IsRefused) {
  const auto differs = [&](const char* path, const json& value, const char* words) {
    json identity = build_identity();
    identity[json::json_pointer(path)] = value;
    const Status status = asked({hello(identity), R"({"begin":"x"})", answer()});
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << path;
    EXPECT_THAT(status.message(), HasSubstr("of another build")) << path;
    EXPECT_THAT(status.message(), HasSubstr(words)) << path;
  };
  differs("/version", "99.1", "version 99.1, not ");
  differs("/judges", "3", "measuring and judging as build 3, not ");
  differs("/backends/reference", "0.0", "its backend reference is of version 0.0, not ");
  differs("/backends", json::object(), "it lacks the backend reference");
  differs("/backends", "all", "which backends");
  differs("/version", nullptr, "version unknown");
}

TEST_F(WorkerOfAnotherBuild, AnswersWhatItWasAsked) {
  task_.targets = {"another"};
  EXPECT_TRUE(asked({hello(build_identity()), R"({"begin":"x"})", answer()}).ok());
  EXPECT_THAT(refusal_, HasSubstr("an answer to another question"));
}

TEST_F(WorkerOfAnotherBuild, IsRefusedWhereItSaysNothingOfItself) {
  for (const std::string& line :
       {answer(), std::string(R"({"failed":"malformed task"})"), std::string("nonsense"),
        std::string(R"({"hello":1})"), std::string("[]")}) {
    const Status status = asked({line, R"({"begin":"x"})", answer()});
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << line;
    EXPECT_THAT(status.message(), HasSubstr("which build it is")) << line;
  }
  EXPECT_THAT(asked({}, "exit 3").message(), HasSubstr("does not work: exited with status 3"));
}

}  // namespace
}  // namespace collage
