// What a plan may say whose checksum is right: whatever it is, an error in words, or a program that
// stays within its buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "artifact/saved_plan.h"
#include "artifact/tiny_plan.h"
#include "runtime/core_team.h"
#include "runtime/executor.h"

namespace collage {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::tiny_plan;

class SavedPlanTest : public ::testing::Test {
 protected:
  // With `text` in place of the plan's description.
  Result<LoadedPlan> load(const std::string& text) {
    const EntryReader reader = [&](const std::string& name) -> Result<SharedBytes> {
      if (name == kPlanEntry) {
        auto holder = std::make_shared<const std::string>(text);
        return SharedBytes{{holder, holder->data()}, holder->size()};
      }
      for (const ZipEntry& entry : saved_.entries)
        if (entry.name == name) return entry.content;
      return bad_model("no entry");
    };
    return load_plan(reader, kPlanEntry, 1);
  }

  // The first `from` changed to `to`.
  std::string load_with(const std::string& from, const std::string& to) {
    std::string changed = text_;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at == std::string::npos) return std::string();
    changed.replace(at, from.size(), to);
    return load(changed).status().to_string();
  }

  SavedPlans saved_ = testing::saved_tiny_plan();
  std::string text_{saved_.entries[0].content.text()};
};

TEST_F(SavedPlanTest, ChecksPlacesAndNames) {
  EXPECT_EQ(load_with("\"arena_bytes\"", "\"arena_bytes\""), "ok");
  EXPECT_THAT(load_with("\"arena_bytes\":", "\"arena_bytes\":-"), HasSubstr("arena_bytes"));
  EXPECT_THAT(load_with("\"arena_bytes\":", "\"arena_bytes\":1,\"x\":"),
              HasSubstr("outside the arena"));
  EXPECT_THAT(load_with("\"arena_bytes\":", "\"arena_bytes\":9000000000000000000,\"x\":"),
              HasSubstr("arena_bytes"));
  EXPECT_THAT(load_with("aBcd16b", "aBcde16b"), HasSubstr("layout"));
  EXPECT_THAT(load_with("\"inputs\":[0]", "\"inputs\":[99]"), HasSubstr("inputs"));
  EXPECT_THAT(load_with("\"inputs\":[0]", "\"inputs\":[]"), HasSubstr("input 0 is not there"));
  EXPECT_THAT(load_with("\"outputs\":[3]", "\"outputs\":[0]"), HasSubstr("writes an input"));
  EXPECT_THAT(load_with("reference.function", "reference.nothing"),
              HasSubstr("kernels of reference"));
  EXPECT_THAT(load_with("nn.relu", "nn.rule"), HasSubstr("nn.rule"));
  EXPECT_THAT(load_with("\"constants\":[[0,720]]", "\"constants\":[[0,724]]"), HasSubstr("724"));
  EXPECT_THAT(load_with("\"constants\":[[0,720]]", "\"constants\":[[64,720]]"),
              HasSubstr("weights"));
  EXPECT_THAT(load_with("\"constants\":[[0,720]]", "\"constants\":[[1,700]]"),
              HasSubstr("weights"));
}

// As where it is loaded for more threads: other buffers lie around the place that it had.
TEST_F(SavedPlanTest, PlacesAWorkspaceThatGrewBeyondAllElse) {
  struct Grown : Kernel {
    Status run(const KernelArgs&) override { return {}; }
    size_t workspace_bytes() const override { return 128; }
  };
  register_kernel_loader({"test.grown", "1", [](const SavedKernel&, int) {
                            return Result<std::shared_ptr<Kernel>>(std::make_shared<Grown>());
                          }});
  text_.replace(text_.find("reference.function"), std::strlen("reference.function"), "test.grown");
  const std::string field = "\"workspace_bytes\":";
  const size_t at = text_.find(field, text_.find("test.grown"));
  const size_t arena = tiny_plan()->arena_bytes;
  ASSERT_GE(arena, 128u);
  for (const char* saved : {"0", "127", "128"}) {
    std::string changed = text_;
    changed.replace(at + field.size(), 1, saved);
    const Result<LoadedPlan> loaded = load(changed);
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    const Plan& plan = *loaded->plan;
    const bool fits = std::strcmp(saved, "128") == 0;
    EXPECT_EQ(plan.steps[0].workspace_offset >= arena, !fits) << saved;
    EXPECT_EQ(plan.arena_bytes >= arena + 128, !fits) << saved;
  }
}

TEST_F(SavedPlanTest, ChecksCores) {
  const auto on_cores = [&](const std::string& cores) {
    const std::string constants = "\"constants\":[[0,720]]";
    return load_with(constants, constants + ",\"cores\":\"" + cores + "\"");
  };
  EXPECT_THAT(on_cores("1023"), HasSubstr(": this process cannot use the cores 1023"));
  EXPECT_THAT(on_cores("all"), HasSubstr("'all' states no cores"));
}

// One core, and its steps, of which each reads what the one before it wrote.
TEST_F(SavedPlanTest, HoldsTheCoresOfSteps) {
  const std::string core = std::to_string(sched_getcpu());
  const std::shared_ptr<Plan> plan = tiny_plan();
  for (size_t s = 0; s < plan->steps.size(); s += 2)
    plan->steps[s].kernel =
        std::make_shared<CoreKernel>(plan->steps[s].kernel, *Cores::parse(core));
  PlanSaver saver(1);
  ASSERT_TRUE(saver.add(kPlanEntry, *plan).ok());
  saved_ = saver.finish().value();
  const Result<LoadedPlan> loaded = load(std::string(saved_.entries[0].content.text()));
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  for (size_t s = 0; s < plan->steps.size(); ++s) {
    const auto* kernel = dynamic_cast<const CoreKernel*>(loaded->plan->steps[s].kernel.get());
    EXPECT_EQ(kernel != nullptr ? kernel->cores().to_string() : "", s % 2 == 0 ? core : "");
  }
  const Tensor input = testing::tiny_input(3);
  EXPECT_EQ(testing::bytes_of(testing::run_plan(loaded->plan, input)),
            testing::bytes_of(testing::run_plan(tiny_plan(), input)));
}

TEST_F(SavedPlanTest, ChecksDevices) {
  const std::string gpu = R"("device":{"kind":"gpu","id":0,"scope":""})";
  const std::string layout = "\"layout\":\"aBcd16b\"";
  EXPECT_THAT(load_with(layout, layout + "," + gpu), HasSubstr("no arena of gpu:0"));
  // There is one, and the buffer begins where one of a device may: the kernels beside it are the
  // host's still.
  const std::string arena = "{" + gpu + ",\"bytes\":65536}";
  for (const auto& [from, to] : {std::pair<std::string, std::string>(
                                     "\"device_arenas\":[]", "\"device_arenas\":[" + arena + "]"),
                                 {"\"offset\":768", "\"offset\":512"}}) {
    const size_t at = text_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text_.replace(at, from.size(), to);
  }
  EXPECT_THAT(load_with(layout, layout + "," + gpu),
              HasSubstr("lies on gpu:0, it uses memory of cpu:0"));
  EXPECT_THAT(load_with("[" + arena + "]", "[" + arena + "," + arena + "]"),
              HasSubstr("a second arena of gpu:0"));
  EXPECT_THAT(load_with("65536", "-1"), HasSubstr("bytes"));
  // Who runs it needs the device.
  Result<LoadedPlan> plan = load(text_);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_THAT(Executor::create(plan->plan, 1).status().to_string(), HasSubstr("gpu:0"));
}

TEST_F(SavedPlanTest, ChecksShapesBeforeItComputesWithThem) {
  const auto refused = AnyOf(HasSubstr("memory"), HasSubstr("elements"), HasSubstr("shape"));
  for (const char* shape : {"[1099511627776,3]", "[4294967296,4294967296,16]",
                            "[0,4611686018427387904]", "[9223372036854775807,9223372036854775807]"})
    EXPECT_THAT(load_with("\"shape\":[1,20,3,3]", "\"shape\":" + std::string(shape)), refused);
  EXPECT_THAT(load_with("\"shape\":[1,20,3,3]", "\"shape\":[-1,20,3,3]"), HasSubstr("shape"));
  // Of a conversion, whose tables would be as long: not the buffers' sizes.
  const std::string converted = "\\\"type\\\":{\\\"dtype\\\":\\\"float32\\\",\\\"shape\\\":[1,20,";
  EXPECT_THAT(load_with(converted + "3,3]", converted + "300,300]"), HasSubstr("bytes, it uses"));
  // Bytes of a copy.
  EXPECT_THAT(load_with("{\\\"bytes\\\":720}", "{\\\"bytes\\\":721}"), HasSubstr("bytes, it uses"));
  EXPECT_THAT(load_with("{\\\"bytes\\\":720}", "{\\\"bytes\\\":18446744073709551615}"),
              HasSubstr("bytes"));
}

// A number of the plan, or of a kernel's description in it, is another one.
TEST_F(SavedPlanTest, SurvivesAnyNumber) {
  const char* const numbers[] = {"0",          "1",        "2",          "3",
                                 "63",         "64",       "719",        "721",
                                 "65536",      "-1",       "2147483648", "4294967295",
                                 "1.5",        "1e300",    "null",       "[]",
                                 "1073741824", "99999999", "4294967296", "18446744073709551615"};
  std::vector<std::pair<size_t, size_t>> places;  // of the digits
  for (size_t i = 0; i < text_.size();) {
    const size_t end = text_.find_first_not_of("0123456789", i);
    const size_t stop = std::min(end, text_.size());
    if (stop > i) places.emplace_back(i, stop - i);
    i = std::max(stop, i + 1);
  }
  ASSERT_GT(places.size(), 50u);
  int loaded = 0;
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const auto [at, length] = places[random() % places.size()];
    std::string changed = text_;
    changed.replace(at, length, numbers[random() % std::size(numbers)]);
    Result<LoadedPlan> plan = load(changed);
    if (!plan.ok()) {
      EXPECT_NE(plan.status().code(), ErrorCode::kInternal) << plan.status().to_string();
      continue;
    }
    ++loaded;
    std::vector<Tensor> inputs, outputs(plan->plan->outputs.size());
    for (const PlanSignature& input : plan->plan->inputs) {
      ASSERT_LT(input.type.bytes(), size_t{1} << 20);
      inputs.push_back(Tensor::zeros(input.type.dtype, input.type.shape));
    }
    Result<Executor> executor = Executor::create(plan->plan, 1);
    if (executor.ok()) (void)executor->run(inputs, outputs);
  }
  EXPECT_GT(loaded, 10);
}

}  // namespace
}  // namespace collage
