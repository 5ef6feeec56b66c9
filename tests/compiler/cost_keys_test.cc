// What the key of a measured cost holds: whoever asks with anything else measures anew.
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/fingerprint.h"
#include "compiler/fault_backend.h"
#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "measure/blocks.h"

namespace collage {
namespace {

constexpr RoundingLimit kFull = RoundingLimit::kDefault;
constexpr RoundingLimit kLowered = RoundingLimit::kAny;

class CostKeys : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::register_all_and_faulty();
    options_.compile.threads = 1;
    options_.worker_command = {std::filesystem::read_symlink("/proc/self/exe").string(), "worker"};
    options_.effort = Effort::kFast;
    options_.cache = CacheState::kWarm;
  }
  void TearDown() override { testing::fault_version() = "1"; }

  // How many of the one target's costs somebody with these options would have to measure.
  size_t unknown(const Function& function, const std::string& target,
                 RoundingLimit rounding = kFull) {
    MeasuredCosts costs(*database_, options_);
    return costs.count_unknown(canonical_text(function), {Target::parse(target).value()}, rounding);
  }

  std::unique_ptr<CostDatabase> database_ = CostDatabase::in_memory();
  CostOptions options_;
};

Function activation(const char* op, const Shape& shape) {
  Expr x = make_var("x", TensorType{shape, DType::kFloat32});
  return make_function({x}, make_call(op, {x}).value());
}

TEST_F(CostKeys, HoldWhatACostDependsOn) {
  const Function tanh = activation("tanh", {3, 5});
  const Target target = Target::parse("faulty -fault=none").value();
  {
    MeasuredCosts costs(*database_, options_);
    Result<std::vector<TargetCosts>> measured_now = costs.function_costs(tanh, {target});
    ASSERT_TRUE(measured_now.ok()) << measured_now.status().to_string();
  }
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 0u) << "whoever asks for the same finds it";

  EXPECT_EQ(unknown(activation("exp", {3, 5}), "faulty -fault=none"), 1u);
  EXPECT_EQ(unknown(activation("tanh", {3, 6}), "faulty -fault=none"), 1u);
  EXPECT_EQ(unknown(tanh, "faulty"), 1u) << "another target's options";
  EXPECT_EQ(unknown(tanh, "faulty -fault=none", kLowered), 1u);
  testing::fault_version() = "2";
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 1u) << "another version of the backend";
  testing::fault_version() = "1";
  options_.compile.threads = 2;
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 1u) << "another number of threads";
  options_.compile.threads = 1;
  options_.cache = CacheState::kStreaming;
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 1u) << "another state of the caches";
  options_.cache = CacheState::kWarm;
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 0u);
}

TEST_F(CostKeys, OfConversionsHoldThreadsAndAllVersions) {
  const TensorType type{{1, 3, 5, 7}, DType::kFloat32};
  const Encoding plain = plain_encoding(type);
  Encoding last = plain;
  last.layout = Layout::channels_last(4);
  {
    MeasuredCosts costs(*database_, options_);
    Result<ConversionRow> measured_now = costs.conversion_cost(type, plain, last);
    ASSERT_TRUE(measured_now.ok()) << measured_now.status().to_string();
  }
  auto is_known = [&](const Encoding& from, const Encoding& to) {
    MeasuredCosts costs(*database_, options_);
    return costs.known_conversion(type, from, to).has_value();
  };
  EXPECT_TRUE(is_known(plain, last));
  EXPECT_FALSE(is_known(last, plain)) << "the way back costs something else";
  testing::fault_version() = "2";
  EXPECT_FALSE(is_known(plain, last));
  testing::fault_version() = "1";
  options_.compile.threads = 2;
  EXPECT_FALSE(is_known(plain, last));
}

TEST_F(CostKeys, HoldTheBuildOfAllThatJudges) {
  using Keys = collage::CostKeys;
  const Keys keys(1, CacheState::kWarm);
  const Target target = Target::parse("faulty").value();
  for (const std::string& context :
       {keys.function_context(target, kFull), keys.function_context(target, kLowered),
        keys.conversion_context({"faulty"}), Keys::quarantine_context("faulty")})
    EXPECT_NE(context.find("\njudged by " + judges_fingerprint()), std::string::npos) << context;
  EXPECT_NE(keys.program_context().find("\nmade and judged by " + programs_fingerprint()),
            std::string::npos);
  for (const std::string& hash : {judges_fingerprint(), programs_fingerprint()})
    EXPECT_EQ(hash.size(), 12u);
  EXPECT_NE(judges_fingerprint(), programs_fingerprint());
  EXPECT_TRUE(is_judged_here({"x", "judged by " + judges_fingerprint()}));
  EXPECT_FALSE(is_judged_here({"x", "judged by 0123456789ab"}));
}

// A kernel in every cover of a long search is measured again and again; what was written reads
// back.
TEST_F(CostKeys, OfRowsThatGrowStayReadable) {
  const Function tanh = activation("tanh", {3, 5});
  const Target target = Target::parse("faulty -fault=none").value();
  MeasuredCosts costs(*database_, options_);
  const auto first = costs.function_costs(tanh, {target});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const Variant variant = first->at(0).variants.at(0).variant;
  for (size_t i = 0; i < kMostKeptBlocks + 2; ++i) {
    const auto more = costs.add_blocks({KernelQuestion{tanh, target, variant}});
    ASSERT_TRUE(more.ok()) << more.status().to_string();
    ASSERT_TRUE(more->at(0).has_value());
    EXPECT_EQ(blocks_of(*measured(*more->at(0))).size(), std::min(i + 2, kMostKeptBlocks));
  }
  EXPECT_EQ(unknown(tanh, "faulty -fault=none"), 0u);
}

}  // namespace
}  // namespace collage
