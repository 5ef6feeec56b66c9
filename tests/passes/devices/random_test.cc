// Random modules with random constraints against a planner that tries every assignment.
#include <gtest/gtest.h>

#include <cstring>

#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "passes/devices/device_copies.h"
#include "passes/devices/every_assignment.h"
#include "passes/devices/operators.h"
#include "passes/devices/plan_devices.h"
#include "random_module.h"

namespace collage {
namespace {

const std::vector<VirtualDevice> kPlaces = {{"cpu", 0, ""}, {"cpu", 0, "texture"},
                                            {"gpu", 0, ""}, {"gpu", 0, "texture"},
                                            {"gpu", 1, ""}, {"gpu", 1, "texture"}};

TEST(RandomGraphs, ArePlannedAsByTryingEveryAssignment) {
  register_operators();
  const DeclaredDevices devices = DeclaredDevices::parse("cpu:0, gpu:0, gpu:1").value();
  size_t planned_graphs = 0, refused = 0, copies = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    testing::RandomModuleOptions options{.values = testing::Sizes{2, 3}, .programs = false};
    options.control = seed % 2 == 0;
    options.most_functions = seed % 3 == 0 ? 1 : 0;
    options.most_steps = 7;
    options.places = {"cpu",      "cpu:0",   "gpu",         "gpu:0",       "gpu:1",
                      "/texture", "/global", "gpu/texture", "gpu:1/global"};
    const std::string text = testing::RandomModule(seed, options).text();
    SCOPED_TRACE(text);
    const Result<Module> module = parse_module(text);
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    testing::EveryAssignment assignment(*module, kPlaces);
    if (assignment.nodes() > 17) continue;
    const Result<Module> planned = plan_devices(*module, devices);
    const std::optional<size_t> expected = assignment.copies();
    ASSERT_EQ(planned.ok(), expected.has_value())
        << (planned.ok() ? "" : planned.status().message());
    if (!expected) {
      ++refused;
      continue;
    }
    ++planned_graphs;
    copies += *expected;
    ASSERT_EQ(count_device_copies(*planned), *expected) << to_text(*planned);
    const Result<Module> again = plan_devices(*planned, devices);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    ASSERT_EQ(to_text(*again), to_text(*planned));
    if (options.most_functions > 0) continue;  // which the interpreter does not link
    const std::vector<Tensor> inputs = random_inputs(module->main(), seed),
                              before = interpret(module->main(), inputs).value(),
                              after = interpret(planned->main(), inputs).value();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i)
      ASSERT_EQ(std::memcmp(before[i].raw(), after[i].raw(), after[i].bytes()), 0);
  }
  EXPECT_GT(planned_graphs, 2000U);
  EXPECT_GT(refused, 100U);
  EXPECT_GT(copies, 500U);
}

}  // namespace
}  // namespace collage
