// Constraints: their text, what joins, and what declared devices make of them.
#include <gmock/gmock.h>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "passes/devices/declared_devices.h"
#include "passes/devices/operators.h"
#include "passes/devices/plan_devices.h"
#include "passes/passes.h"

namespace collage {
namespace {

DeviceConstraint constraint(const std::string& text) {
  const Result<DeviceConstraint> parsed = DeviceConstraint::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : DeviceConstraint();
}

TEST(Constraint, IsWhatItsTextSays) {
  for (const char* text : {"?", "gpu", "gpu:1", "gpu:1/texture", "gpu/global", "/scratch",
                           "gpu:0@native -width=8", "@native", "gpu:2/texture@opencl"})
    EXPECT_EQ(constraint(text).to_string(), text);
  EXPECT_TRUE(constraint("?").is_open());
  EXPECT_EQ(constraint("gpu/global").memory_scope, "");
  EXPECT_EQ(constraint("gpu").memory_scope, std::nullopt);
  for (const char* text : {"", "gpu:", "gpu:-1", "gpu:x", ":1", "gpu/", "g pu", "gpu@", "gpu:1:2"})
    EXPECT_FALSE(DeviceConstraint::parse(text).ok()) << text;
}

TEST(Constraint, JoinsWhatAgrees) {
  const auto joined = [](const char* a, const char* b) {
    const auto one = join(constraint(a), constraint(b)), other = join(constraint(b), constraint(a));
    EXPECT_EQ(one, other);
    return one ? one->to_string() : "none";
  };
  EXPECT_EQ(joined("gpu", "gpu:1"), "gpu:1");
  EXPECT_EQ(joined("gpu", "/texture"), "gpu/texture");
  EXPECT_EQ(joined("?", "gpu:0@native"), "gpu:0@native");
  EXPECT_EQ(joined("gpu:0", "gpu:1"), "none");
  EXPECT_EQ(joined("gpu", "cpu"), "none");
  EXPECT_EQ(joined("gpu/texture", "gpu/global"), "none");
  EXPECT_EQ(joined("@native", "@opencl"), "none");
  EXPECT_EQ(joined("@native", "@native -symbolic=only"), "@native -symbolic=only");
  EXPECT_EQ(joined("@native -a=1", "gpu@native -b=2"), "gpu@native -a=1 -b=2");
  EXPECT_EQ(joined("@native -a=1", "@native -a=2"), "none");
  EXPECT_EQ(joined("@opencl", "@opencl -device=gpu:1"), "@opencl -device=gpu:1");
  EXPECT_EQ(joined("@opencl -device=gpu:0", "@opencl -device=gpu:1"), "none");
  EXPECT_EQ(joined("@opencl -memory_scope=a", "@opencl -memory_scope=b"), "none");
}

TEST(DeclaredDevices, ResolveToTheFirstThatFits) {
  const DeclaredDevices devices = DeclaredDevices::parse("cpu:0, gpu:0, gpu:1, tiny=npu:3").value();
  EXPECT_EQ(devices.to_string(), "cpu:0, gpu:0, gpu:1, tiny=npu:3");
  const auto place = [&](const char* text) {
    const Result<PlannedDevice> found = devices.resolve(constraint(text));
    return found ? found->constraint().to_string() : found.status().message();
  };
  EXPECT_EQ(place("gpu"), "gpu:0");
  EXPECT_EQ(place("gpu:1/texture"), "gpu:1/texture");
  EXPECT_EQ(place("tiny"), "npu:3");
  EXPECT_EQ(place("npu"), "npu:3");
  EXPECT_EQ(place("/texture"), "cpu:0/texture");
  EXPECT_EQ(place("gpu:2"),
            "no device 'gpu:2' is declared: there are cpu:0, gpu:0, gpu:1, tiny=npu:3");
  for (const char* text : {"", "cpu:0, cpu:0", "a=cpu:0, a=gpu:0", "cpu/texture", "?"})
    EXPECT_FALSE(DeclaredDevices::parse(text).ok()) << text;
}

// Views are joined over nothing that places a value, and copies stay.
TEST(Simplification, KeepsPlacements) {
  register_operators();
  const std::string text = R"(fn (%x: Tensor[(2, 3), float32]) {
  %0 = on_device(nn.relu(%x), device="gpu");
  %1 = device_copy(reshape(%0, newshape=[6]), from="gpu:0", to="cpu:0");
  reshape(%1, newshape=[3, 2])
})";
  Module module(parse_function(text).value());
  ASSERT_TRUE(simplification_pipeline().run(module).ok());
  EXPECT_EQ(to_text(module), to_text(Module(parse_function(text).value())));
}

}  // namespace
}  // namespace collage
