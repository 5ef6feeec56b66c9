#include "cost/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_fields.h"
#include "base/processor.h"
#include "cost/cost_keys.h"
#include "cost/cost_store.h"
#include "cost/database_fixture.h"
#include "cost/database_tools.h"
#include "ir/text_printer.h"
#include "measure/planted_kernel.h"

namespace collage {
namespace {

using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Machines : public testing::DatabaseFile {
 protected:
  void SetUp() override {
    testing::DatabaseFile::SetUp();
    database_ = CostDatabase::open(file());
  }
  // One that measured with this build.
  static Machine other(const std::string& processor = "Other 01234567", double float32 = 5e10) {
    Machine machine = this_machine(2);
    machine.processor = processor;
    machine.fingerprint = CostKeys(2, CacheState::kWarm, processor).fingerprint();
    machine.speed = {float32, 1e10};
    return machine;
  }
  Status refused(const std::string& fingerprint) {
    return find_machine(*database_, fingerprint).status();
  }

  std::unique_ptr<CostDatabase> database_;
};

TEST_F(Machines, AreKnownByTheirFingerprints) {
  const Machine here = this_machine(2), there = other();
  EXPECT_NE(here.fingerprint, there.fingerprint);
  EXPECT_NE(here.fingerprint, this_machine(1).fingerprint);
  for (const Machine& machine : {here, there, here}) introduce(*database_, machine);
  EXPECT_EQ(machines_of(*database_).size(), 2u);
  const Machine found = find_machine(*database_, there.fingerprint.substr(0, 8)).value();
  EXPECT_EQ(found.fingerprint, there.fingerprint);
  EXPECT_EQ(found.processor, there.processor);
  EXPECT_EQ(found.features, processor_features());
  EXPECT_EQ(found.kind(), here.kind());
  EXPECT_EQ(found.targets, here.targets);
  EXPECT_EQ(found.speed.float32, 5e10);
  EXPECT_TRUE(verify_costs(*database_).ok());
  EXPECT_EQ(describe_database(*database_)->stale, 0);
}

TEST_F(Machines, AreIntroducedAgainWhenTheirSpeedIsKnown) {
  Machine machine = other();
  const MachineSpeed speed = std::exchange(machine.speed, {});
  introduce(*database_, machine);
  machine.speed = speed;
  introduce(*database_, machine);
  EXPECT_EQ(machines_of(*database_).at(0).speed.float32, speed.float32);
  machine.speed = {};
  introduce(*database_, machine);
  EXPECT_EQ(machines_of(*database_).at(0).speed.float32, speed.float32) << "it stays";
}

TEST_F(Machines, OthersAreRefusedInALine) {
  EXPECT_THAT(refused("0123").to_string(), HasSubstr("there is none"));
  Machine there = other();
  introduce(*database_, there);
  EXPECT_EQ(refused("xyz").code(), ErrorCode::kUsage);
  EXPECT_THAT(refused("").to_string(), HasSubstr(there.fingerprint + " (Other 01234567)"));
  there.fingerprint = "fedcba9876543210";
  introduce(*database_, there);
  EXPECT_EQ(refused("fedcba").code(), ErrorCode::kUnavailable);
  EXPECT_THAT(refused("fedcba").to_string(), HasSubstr("another build"));
  there.fingerprint = "aaaa";
  there.architecture = "aarch64";
  introduce(*database_, there);
  EXPECT_EQ(refused("aaaa").code(), ErrorCode::kUnavailable);
  EXPECT_THAT(refused("aaaa").to_string(), HasSubstr("aarch64"));
}

TEST_F(Machines, OfAKindDifferInSpeedAlone) {
  const Machine here = this_machine(2);
  EXPECT_EQ(other().kind(), here.kind());
  Machine apart = other();
  apart.features.pop_back();
  EXPECT_NE(apart.kind(), here.kind());
  apart = other();
  apart.private_cache *= 2;
  EXPECT_NE(apart.kind(), here.kind());
  EXPECT_NE(this_machine(1).kind(), here.kind());
  for (const Machine& machine : {here, other(), apart, this_machine(1)})
    introduce(*database_, machine);
  EXPECT_THAT(machines_of(*database_, here.kind()),
              UnorderedElementsAre(Field(&Machine::processor, here.processor),
                                   Field(&Machine::processor, "Other 01234567")));
}

// As if that machine had measured the function.
void measure_there(CostDatabase& database, const Machine& there, const Function& function,
                   double seconds) {
  const Target target{"reference", {}, {}};
  TargetCosts costs;
  costs.target = target.to_string();
  costs.variants = {{Variant::plain("only", function), Measured{seconds, seconds, seconds, 9}}};
  const std::string text = canonical_text(function),
                    context = CostKeys(2, CacheState::kStreaming, there.processor)
                                  .function_context(target, RoundingLimit::kDefault);
  database.put("function", CostDatabase::key_of(text, context), text, json_text(to_json(costs)),
               context);
}

class CostsOfAKind : public Machines {
 protected:
  // What the function is thought to take here, where a machine of half this one's speed measured a
  // millisecond; none: nothing is known.
  std::optional<double> known(const Machine& there, bool frozen = false) {
    const Function function = testing::unary("tanh", {8, 8});
    CostOptions options;
    options.compile.threads = 2;
    options.frozen = frozen;
    options.shipped.clear();
    const std::string name = CostKeys(2, CacheState::kWarm).processor();
    database_->put("machine", CostDatabase::key_of(kSpeedName, name), kSpeedName,
                   json_text(to_json(MachineSpeed{1e11, 1e10})), name);
    introduce(*database_, there);
    measure_there(*database_, there, function, 1e-3);
    CostStore store(*database_, options);
    const CostKey key{canonical_text(function), {"reference", {}, {}}};
    store.expect({key});
    EXPECT_FALSE(store.find_measured(key).has_value()) << "it was not measured here";
    const std::optional<TargetCosts> offer = store.find_offer(key, &function);
    if (!offer) return std::nullopt;
    EXPECT_TRUE(std::holds_alternative<Unknown>(offer->variants.at(0).cost));
    return offer->variants.at(0).elsewhere;
  }
};

TEST_F(CostsOfAKind, AreScaledBySpeed) {
  const std::optional<double> seconds = known(other());
  ASSERT_TRUE(seconds.has_value());
  EXPECT_NEAR(*seconds, 0.5e-3, 1e-9);
}

TEST_F(CostsOfAKind, OfAnotherAreNotTaken) {
  Machine apart = other();
  apart.features.pop_back();
  EXPECT_FALSE(known(apart).has_value());
}

TEST_F(CostsOfAKind, WithoutASpeedAreNotTaken) {
  EXPECT_FALSE(known(other("Other 01234567", 0)).has_value());
}

TEST_F(CostsOfAKind, AreNoneWhereCostsAreFrozen) {
  EXPECT_FALSE(known(other(), /*frozen=*/true).has_value());
}

// What a store finds of another machine is that machine's.
TEST_F(CostsOfAKind, AreThoseOfTheMachineThatIsCompiledFor) {
  const Function function = testing::unary("tanh", {8, 8});
  measure_there(*database_, other(), function, 1e-3);
  const CostKey key{canonical_text(function), {"reference", {}, {}}};
  CostOptions options;
  options.compile.threads = 2;
  options.frozen = true;
  EXPECT_FALSE(CostStore(*database_, options).find_measured(key).has_value());
  options.machine = std::make_shared<const Machine>(other());
  EXPECT_TRUE(CostStore(*database_, options).find_measured(key).has_value());
}

}  // namespace
}  // namespace collage
