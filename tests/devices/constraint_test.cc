// Constraints: their text, what joins, and what declared devices make of them.
#include <gmock/gmock.h>

#include "devices/declared_devices.h"
#include "devices/operators.h"
#include "devices/plan_devices.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "passes/passes.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

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

TEST(DeclaredDevices, KnowTheDevicesOfTargets) {
  DeclaredDevices devices = DeclaredDevices::parse("cpu:0, gpu:0, gpu:1").value();
  const auto target = [](const char* text) { return Target::parse(text).value(); };
  ASSERT_TRUE(devices.set_targets({target("native"), target("opencl -device=gpu:1")}).ok());
  EXPECT_EQ(devices.resolve(constraint("@opencl -device=gpu:1"))->device.id, 1);
  EXPECT_THAT(devices.resolve(constraint("gpu:0@opencl -device=gpu:1")).status().message(),
              HasSubstr("that target runs on gpu:1"));
  EXPECT_THAT(devices.resolve(constraint("@cuda")).status().message(),
              HasSubstr("target 'cuda' is not among those"));
  EXPECT_FALSE(devices.set_targets({target("opencl -device=npu")}).ok());
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

// A kernel that states the scopes of its buffers, as lowered programs do.
class Scoped : public AbstractFunction {
 public:
  Scoped(Type type, std::vector<std::string> scopes)
      : type_(std::move(type)), scopes_(std::move(scopes)) {}
  const Type& type() const override { return type_; }
  std::string to_text() const override { return ""; }
  std::string kind_name() const override { return "scoped"; }
  std::vector<std::string> memory_scopes() const override { return scopes_; }

 private:
  Type type_;
  std::vector<std::string> scopes_;
};

TEST(Planning, AfterLoweringFollowsTheScopesOfBuffers) {
  register_operators();
  const TensorType tensor{{4}, DType::kFloat32};
  const Type type = Type::function({tensor, tensor}, tensor);
  const Expr x = make_var("x", tensor);
  const Expr kernel = make_global_var("kernel", type);
  const auto on_gpu = [](const Expr& value) {
    return make_call("on_device", {value}, {{"device", "gpu"}}).value();
  };
  const Expr first = on_gpu(make_function_call(kernel, {x, x}).value());
  const Expr second = on_gpu(make_function_call(kernel, {first, x}).value());
  Module module(make_function({x}, make_call("exp", {second}).value()));
  module.abstract_functions["kernel"] =
      std::make_shared<Scoped>(type, std::vector<std::string>{"texture", "global", "texture"});
  const DeclaredDevices devices = DeclaredDevices::parse("cpu:0, gpu:0").value();
  const Result<Module> planned = plan_devices(module, devices);
  ASSERT_TRUE(planned.ok()) << planned.status().to_string();
  // x is a texture, and copied to be read otherwise, once; between the kernels is a texture; the
  // last result is copied to the CPU.
  EXPECT_EQ(count_device_copies(*planned), 2U);
  EXPECT_EQ(planned->main()->attrs.string("param_devices"), "gpu:0/texture");
  EXPECT_EQ(planned->main()->attrs.string("result_devices"), "cpu:0");
  const auto* last = as<CallNode>(as<CallNode>(planned->main()->body)->args[0]);
  EXPECT_EQ(last->attrs.string("from"), "gpu:0/texture");
  const Result<Module> again = plan_devices(*planned, devices);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_TRUE(structural_equal(again->main(), planned->main()));
}

}  // namespace
}  // namespace collage
