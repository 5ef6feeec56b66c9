// What kernels state to err by, and that it is so.
#include <cmath>

#include "backend/offer.h"
#include "backend/opencl/kernels/device.h"
#include "check.h"

namespace collage::opencl {
namespace {

using testing::Graph;

bool is_strict(const Function& function) {
  CompileOptions options{2, ""};
  options.rounding = RoundingLimit::kStrict;
  return !offered_variants(staged_backend(), function, first_device(), options).value().empty();
}

Function function_of(const char* op, const Attrs& attrs = {}) {
  Graph graph;
  return graph.function(graph.call(op, {graph.input({16, 64})}, attrs));
}

// PoCL's compiler adds up the terms of exponentials in another order.
TEST(OpenClAccuracy, OfExponentialsOnProcessorsIsNotStrict) {
  REQUIRE_DEVICE();
  const bool exact = !known_devices().at(0).is_cpu;
  for (const char* op : {"exp", "log", "sigmoid", "nn.silu", "nn.softplus"})
    EXPECT_EQ(is_strict(function_of(op)), exact) << op;
  EXPECT_EQ(is_strict(function_of("nn.softmax", {{"axis", int64_t{1}}})), exact);
  for (const char* op : {"nn.relu", "sqrt", "abs"}) EXPECT_TRUE(is_strict(function_of(op))) << op;
  Graph graph;
  const Expr dense = graph.call("nn.dense", {graph.input({8, 64}), graph.constant({32, 64})});
  EXPECT_TRUE(is_strict(graph.function(dense)));
  EXPECT_EQ(is_strict(graph.function(graph.call("sigmoid", {dense}))), exact);
}

TEST(OpenClAccuracy, OfExponentialsIsWhatTheyState) {
  REQUIRE_DEVICE();
  Tensor x = Tensor::empty(DType::kFloat32, {16, 64});
  for (int64_t i = 0; i < x.size(); ++i)
    x.data<float>()[i] = 0.17f * static_cast<float>(i - 512);  // ±87
  check_with_inputs(function_of("exp"), {x}, {.mean = 0, .element = 1e-5});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = std::exp(x.data<float>()[i]);
  check_with_inputs(function_of("log"), {x}, {.mean = 0, .element = 1e-5});
}

}  // namespace
}  // namespace collage::opencl
