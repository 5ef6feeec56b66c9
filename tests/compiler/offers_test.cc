// Which backends offer to fuse what reads one tensor, and what follows one another: neither kind of
// fusion is one backend's alone. Only their rules are looked at: nothing needs to run here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "ir/op.h"
#include "partition/dataflow_graph.h"

namespace collage {
namespace {

using ::testing::Contains;

Expr input(Shape shape) { return make_var("x", TensorType{std::move(shape), DType::kFloat32}); }
Expr weights(Shape shape) {
  return make_constant(Tensor::zeros(DType::kFloat32, std::move(shape)));
}
Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

// What the backend's rule offers of the function, as operators joined with '+'.
std::vector<std::string> offers(const std::string& backend, const Function& function) {
  const DataflowGraph graph(function);
  const Target target{backend, {}, {}};
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{backend, find_backend(backend)->partition_rule(target), target});
  std::vector<std::string> result;
  for (const CandidatePartition& candidate : spec->rule->all_candidates(graph, spec))
    result.push_back(candidate.sub_graph.ops_label(graph));
  return result;
}

// Of the backends those whose library was here when this was built: others have no rule.
std::vector<std::string> among(std::vector<std::string> backends) {
  std::erase_if(backends, [](const std::string& name) { return find_backend(name) == nullptr; });
  return backends;
}

class Offers : public ::testing::Test {
 protected:
  void SetUp() override { register_all(); }
};

// Queries, keys and values.
TEST_F(Offers, ProductsOfOneTensorAreOneKernelOfSeveralBackends) {
  const Expr x = input({64, 32});
  std::vector<Expr> results;
  for (int i = 0; i < 3; ++i) results.push_back(call("nn.dense", {x, weights({48, 32})}));
  const Function function = make_function({x}, make_tuple(results));
  const std::vector<std::string> backends = among({"amx", "openvino"});
  if (backends.size() < 2) GTEST_SKIP() << "openvino is not here";
  for (const std::string& backend : backends)
    EXPECT_THAT(offers(backend, function), Contains("nn.dense+nn.dense+nn.dense")) << backend;
}

TEST_F(Offers, WhatPrecedesAnAnchorIsInTheKernelOfSeveralBackends) {
  const Expr x = input({1, 16, 8, 8});
  const Expr large = call("image.resize2d", {x},
                          {{"size", Ints{16, 16}},
                           {"method", std::string("nearest_neighbor")},
                           {"coordinate_transformation_mode", std::string("asymmetric")},
                           {"rounding_method", std::string("floor")}});
  const Expr y =
      call("nn.conv2d", {large, weights({16, 16, 3, 3})}, {{"padding", Ints{1, 1, 1, 1}}});
  const Function function = make_function({x}, y);
  for (const std::string& backend : among({"amx", "native", "openvino"}))
    EXPECT_THAT(offers(backend, function), Contains("image.resize2d+nn.conv2d")) << backend;
}

TEST_F(Offers, AProductAfterAProductIsInOneKernelWithIt) {
  if (among({"openvino"}).empty()) GTEST_SKIP() << "openvino is not here";
  const Expr x = input({64, 32});
  const Expr up = call("nn.gelu", {call("nn.dense", {x, weights({128, 32})})});
  const Expr down = call("nn.softmax", {call("nn.dense", {up, weights({32, 128})})});
  EXPECT_THAT(offers("openvino", make_function({x}, down)), Contains("nn.dense+nn.gelu+nn.dense"));
}

}  // namespace
}  // namespace collage
