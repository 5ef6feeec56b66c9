#include "partition/by_device.h"

#include <gmock/gmock.h>

#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "passes/devices/device_copies.h"
#include "passes/devices/operators.h"
#include "passes/devices/plan_devices.h"

namespace collage {
namespace {

std::string text(const Module& module) {
  const std::string whole = to_text(module);
  return whole.substr(whole.find('\n') + 1);
}

Function parsed(const std::string& function) {
  register_operators();
  Result<Function> result = parse_function(function);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return *result;
}

std::shared_ptr<const PartitionSpec> on_gpu(const std::set<std::string>& ops, bool joined) {
  auto spec = std::make_shared<PartitionSpec>();
  spec->name = "t";
  spec->target = Target::parse("t -device=gpu:1").value();
  spec->rule = std::make_shared<OpPredicatePartitionRule>(
      "ops", [ops](const CallNode& call) { return ops.count(call.op->name) > 0; });
  if (joined) spec->rule = std::make_shared<MaxCoalescePartitionRule>("joined", spec->rule);
  return spec;
}

DeclaredDevices devices() { return DeclaredDevices::parse("cpu:0, gpu:0, gpu:1").value(); }

constexpr const char* kChain = R"(fn (%a: Tensor[(4), float32], %b: Tensor[(4), float32]) {
  %0 = exp(%a);
  %1 = nn.relu(%0);
  %2 = sqrt(%1);
  add(%2, exp(%b))
})";

TEST(AnnotateDevices, WrapsWhatARuleFinds) {
  const Function function = parsed(kChain);
  const Function annotated = *annotate_devices(function, on_gpu({"exp", "nn.relu"}, true));
  size_t placements = 0;
  for (const Expr& expr : post_order(annotated->body))
    placements += as_op(expr, "on_device") != nullptr;
  EXPECT_EQ(placements, 3U);
  EXPECT_EQ(*annotate_devices(function, on_gpu({"cos"}, false)), function);
  const Result<Module> planned = plan_devices(Module(annotated), devices());
  ASSERT_TRUE(planned.ok()) << planned.status().to_string();
  EXPECT_EQ(count_device_copies(*planned), 2U);  // the relu's result, and the second exponential
}

TEST(AnnotateDevices, WrapsWhatHasAName) {
  register_operators();
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  const Expr first = make_call("exp", {x}, {}, "encoder/exp").value();
  const Function function = make_function({x}, make_call("sqrt", {first}, {}, "head").value());
  const auto annotated = [&](std::vector<std::string> texts) -> Result<Function> {
    std::vector<DevicePin> pins;
    for (const std::string& text : texts) pins.push_back(TRY(DevicePin::parse(text)));
    return annotate_devices(function, pins);
  };
  const Result<Function> two = annotated({"enc=gpu:1/texture", ".*=cpu@native -a=b"});
  ASSERT_TRUE(two.ok()) << two.status().to_string();
  const CallNode* head = as_op((*two)->body, "on_device");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->attrs.string("device"), "cpu@native -a=b");
  const CallNode* encoder = as_op(as<CallNode>(head->args[0])->args[0], "on_device");
  ASSERT_NE(encoder, nullptr);
  EXPECT_EQ(encoder->attrs.string("device"), "gpu:1/texture");
  EXPECT_EQ(annotated({"nowhere=gpu"}).status().message(), "'nowhere=gpu' matches no node");
  for (const char* text : {"gpu", "a(=gpu", "a=g pu"}) EXPECT_FALSE(annotated({text}).ok()) << text;
}

TEST(PartitionByDevice, HoistsWhatIsTogether) {
  const Function annotated = *annotate_devices(parsed(kChain), on_gpu({"exp", "nn.relu"}, false));
  const Result<Module> planned = plan_devices(Module(annotated), devices());
  ASSERT_TRUE(planned.ok()) << planned.status().to_string();
  const Result<Module> parts = partition_by_device(*planned, devices());
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_EQ(
      text(*parts),
      R"(def @collage_gpu_1_exp(%p0: Tensor[(4), float32], param_devices="gpu:1", result_devices="gpu:1") -> Tensor[(4), float32] {
  exp(%p0)
}
def @collage_gpu_1_exp_nn_relu(%p0: Tensor[(4), float32], param_devices="gpu:1", result_devices="gpu:1") -> Tensor[(4), float32] {
  %0 = exp(%p0);
  nn.relu(%0)
}
def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32], param_devices="gpu:1, gpu:1", result_devices="cpu:0") -> Tensor[(4), float32] {
  %0 = @collage_gpu_1_exp_nn_relu(%a);
  %1 = device_copy(%0, from="gpu:1", to="cpu:0");
  %2 = sqrt(%1);
  %3 = @collage_gpu_1_exp(%b);
  %4 = device_copy(%3, from="gpu:1", to="cpu:0");
  add(%2, %4)
}
)");
}

// There and back: what is between the two kernels is elsewhere, so that they are two functions.
TEST(PartitionByDevice, KeepsPathsThatLeaveApart) {
  const Function function = parsed(R"(fn (%a: Tensor[(4), float32]) {
  %0 = on_device(exp(%a), device="gpu:0");
  %1 = on_device(sqrt(%0), device="cpu");
  on_device(add(%0, %1), device="gpu:0")
})");
  const Result<Module> planned = plan_devices(Module(function), devices());
  ASSERT_TRUE(planned.ok()) << planned.status().to_string();
  const Result<Module> parts = partition_by_device(*planned, devices());
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_EQ(parts->functions.size(), 3U) << text(*parts);
  EXPECT_EQ(count_device_copies(*parts), count_device_copies(*planned));
}

}  // namespace
}  // namespace collage
