// The steps of lowering, as COLLAGE_DUMP writes them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "backend/native/native_backend.h"
#include "base/files.h"
#include "check.h"

namespace collage::native {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What compiling the variant writes, by step.
std::map<std::string, std::string> dumped(const Function& f, const std::string& schedule,
                                          const std::string& filter) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("lowering_" + std::to_string(::getpid()));
  ::setenv("COLLAGE_DUMP", (folder.string() + filter).c_str(), 1);
  const auto kernel =
      make_native_backend()->compile(f, scheduled(schedule, f), Target{"native", {}, {}}, {2, ""});
  ::unsetenv("COLLAGE_DUMP");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  std::map<std::string, std::string> texts;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().stem();
    EXPECT_TRUE(name.starts_with("kernel_" + schedule + "_")) << name;
    texts[name.substr(name.rfind('_', name.rfind('_') - 1) + 1)] = read_file(file.path()).value();
  }
  std::filesystem::remove_all(folder);
  return texts;
}

TEST(Lowering, WritesEachStep) {
  const Expr x = var("x", {8, 48});
  const Function f = function({x}, call("nn.relu", {call("tanh", {x})}));
  std::map<std::string, std::string> steps = dumped(f, "stages", ":^kernel_");
  std::vector<std::string> names;
  for (const auto& [name, text] : steps) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("1_function", "2_program", "3_planned", "4_scheduled", "5_halide",
                                 "6_assembly"));
  EXPECT_THAT(steps["1_function"], HasSubstr("nn.relu"));
  EXPECT_THAT(steps["2_program"], HasSubstr("tanh(p0["));
  EXPECT_THAT(steps["4_scheduled"], HasSubstr("y0.vectorise("));
  EXPECT_THAT(steps["5_halide"], HasSubstr("for"));
  EXPECT_THAT(steps["6_assembly"], HasSubstr(".globl"));
}

TEST(Lowering, WritesTheStepsThatAreNamed) {
  const Expr x = var("x", {8, 48});
  const Function f = function({x}, call("tanh", {x}));
  EXPECT_EQ(dumped(f, "stages", ":kernel_sched").size(), 1);
  EXPECT_EQ(dumped(f, "stages", "").size(), 0);
}

}  // namespace
}  // namespace collage::native
