#include "report/read_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/files.h"
#include "report/sample_report.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::EndsWith;

Status read_back(const std::string& text) {
  const std::string path = fmt::format("{}report-{}.json", ::testing::TempDir(), ::getpid());
  TRY(write_file_atomically(path, text));
  Result<json> report = read_report(path);
  std::filesystem::remove(path);
  return report.ok() ? Status() : std::move(report).status();
}

TEST(ReadReport, TakesWhatTheSchemaAllows) {
  Status status = read_back(testing::sample_report().dump());
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ReadReport, RefusesEverythingElseAndSaysWhere) {
  auto refusal = [](const std::function<void(json&)>& change) {
    json report = testing::sample_report();
    change(report);
    return read_back(report.dump()).message();
  };
  EXPECT_THAT(read_back("{").message(), EndsWith("is no JSON"));
  EXPECT_THAT(read_back("[]").message(), EndsWith(": is no object"));
  EXPECT_THAT(refusal([](json& r) { r.erase("kernels"); }), EndsWith("/kernels: is missing"));
  EXPECT_THAT(refusal([](json& r) { r["schema_version"] = 99; }),
              EndsWith("/schema_version: is not 2"));
  EXPECT_THAT(refusal([](json& r) { r["kernels"][1]["cost_ms"]["median"] = "fast"; }),
              EndsWith("/kernels/1/cost_ms/median: is no number"));
  EXPECT_THAT(refusal([](json& r) { r["kernels"][0]["ops"][0]["index"] = -1; }),
              EndsWith("/kernels/0/ops/0/index: is below 0"));
  EXPECT_THAT(refusal([](json& r) { r["env"]["versions"]["onednn"] = 3; }),
              EndsWith("/env/versions/onednn: is no string"));
  EXPECT_THAT(refusal([](json& r) { r["model_sha256"] = "XY"; }),
              EndsWith("/model_sha256: does not match ^[0-9a-f]{64}$"));
  EXPECT_THAT(refusal([](json& r) { r["surprise"] = 1; }), EndsWith("/surprise: is not known"));
}

}  // namespace
}  // namespace collage
