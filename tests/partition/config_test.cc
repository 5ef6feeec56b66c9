// Configurations that nobody vouches for: an error of usage, whatever the file holds.
#include "partition/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/registry.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  register_all_ops();
  const Result<PartitionConfig> config = parse_config(text, "c.json");
  EXPECT_EQ(config.status().code(), ErrorCode::kUsage);
  return config.status().to_string();
}

TEST(Config, NumbersOutOfRangeAreRefused) {
  EXPECT_THAT(refusal(R"({"mock_costs": {"fusion_benefit": 1e999}})"), HasSubstr("c.json: "));
}

TEST(Config, DeepNestingIsRefused) {
  EXPECT_EQ(refusal(std::string(1'000'000, '[')), "c.json: nested more than 128 levels deep");
  EXPECT_EQ(
      refusal(R"({"targets": )" + std::string(200'000, '[') + std::string(200'000, ']') + "}"),
      "c.json: nested more than 128 levels deep");
}

TEST(Config, ATargetHasOptionsOfItsBackend) {
  register_all_ops();
  const auto config = parse_config(
      R"({"targets": [{"name": "calling", "compiler": "native", "options": {"symbolic": "only"}}]})",
      "c.json");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->specs[0]->target.to_string(), "calling -symbolic=only");
  const auto with = [](const std::string& options) {
    return refusal(R"({"targets": [{"name": "native", "options": )" + options + "}]}");
  };
  EXPECT_THAT(with("[]"), HasSubstr("/targets/0/options: expected an object, found []"));
  EXPECT_THAT(with(R"({"a b": "1"})"), HasSubstr("/targets/0/options/a b: expected a name"));
  EXPECT_THAT(with(R"({"a": 1})"), HasSubstr("/targets/0/options/a: expected a string"));
}

}  // namespace
}  // namespace collage
