// What native offers: which candidates the rule finds, and how compiled code is kept.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "backend/native/native_backend.h"
#include "check.h"
#include "partition/dataflow_graph.h"
#include "partition/lightweight.h"

namespace collage::native {
namespace {

std::vector<CandidatePartition> candidates(const DataflowGraph& graph) {
  const auto backend = make_native_backend();
  const Target target{"native", {}, {}};
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"native", backend->partition_rule(target), target});
  return spec->rule->all_candidates(graph, spec);
}

std::vector<std::string> labels(const Function& function) {
  const DataflowGraph graph(function);
  std::vector<std::string> result;
  for (const CandidatePartition& candidate : candidates(graph))
    result.push_back(candidate.sub_graph.ops_label(graph));
  return result;
}

Expr conv(const Expr& x, int64_t channels) {
  return call("nn.conv2d", {x, weights({channels, x->tensor_type().shape[1], 3, 3})},
              {{"padding", Ints{1, 1, 1, 1}}});
}

/// The first operators of `ops`, the last ones, and each alone.
std::vector<std::string> parts_of_chain(const std::vector<std::string>& ops) {
  std::set<std::string> parts(ops.begin(), ops.end());
  for (size_t cut = 0; cut < ops.size(); ++cut) {
    std::string first = ops[0], last = ops[cut];
    for (size_t i = 1; i <= cut; ++i) first += "+" + ops[i];
    for (size_t i = cut + 1; i < ops.size(); ++i) last += "+" + ops[i];
    parts.insert({first, last});
  }
  return {parts.begin(), parts.end()};
}

TEST(Rule, EachPrefixAndEachTailOfAnAnchorsChainIsOffered) {
  const Expr x = var("x", {1, 16, 8, 8}), r = var("r", {1, 16, 8, 8});
  const Expr y = call("nn.bias_add", {conv(x, 16), weights({16})});
  EXPECT_THAT(labels(function({x}, call("nn.relu", {y}))),
              ::testing::UnorderedElementsAre("nn.conv2d", "nn.conv2d+nn.bias_add",
                                              "nn.conv2d+nn.bias_add+nn.relu", "nn.bias_add",
                                              "nn.relu", "nn.bias_add+nn.relu"));
  EXPECT_THAT(labels(function({x, r}, call("nn.relu", {call("add", {y, r})}))),
              ::testing::UnorderedElementsAre(
                  "nn.conv2d", "nn.conv2d+nn.bias_add", "nn.conv2d+nn.bias_add+add",
                  "nn.conv2d+nn.bias_add+add+nn.relu", "nn.bias_add", "add", "nn.relu",
                  "nn.bias_add+add", "nn.bias_add+add+nn.relu", "add+nn.relu"));
}

TEST(Rule, ChainsBetweenBytesAreOffered) {
  const Expr x = var("x", {1, 16, 8, 8}, DType::kUInt8);
  const Expr one = make_scalar(1.0f), zero = make_scalar(int32_t{0});
  const Expr w = call("cast", {weights({16, 16, 3, 3}, true)}, {{"dtype", DType::kInt8}});
  const Expr y = call("qnn.conv2d", {x, w, one, zero, one, zero});
  // What another toolchain's product of bytes leaves; native itself wants constant weights.
  const Expr chain = call("qnn.quantize", {call("nn.relu", {y}), one, zero});
  EXPECT_THAT(labels(function({x}, chain)),
              ::testing::IsSupersetOf({"nn.relu+qnn.quantize", "nn.relu", "qnn.quantize"}));
  // And what it adds to a chain, before it is said what its bytes stand for and after.
  const Expr r = var("r", {1, 16, 6, 6}, DType::kUInt8);
  const Expr kept = make_constant(Tensor::zeros(DType::kInt8, {16, 16, 3, 3}));
  const Expr z = call("qnn.conv2d", {x, kept, one, zero, one, zero});
  const Expr sum = call("add", {z, call("qnn.dequantize", {r, one, zero})});
  EXPECT_THAT(labels(function({x, r}, call("qnn.quantize", {sum, one, zero}))),
              ::testing::IsSupersetOf({"qnn.conv2d+add", "qnn.conv2d+qnn.dequantize+add",
                                       "qnn.conv2d+add+qnn.quantize",
                                       "qnn.conv2d+qnn.dequantize+add+qnn.quantize"}));
  const Expr real = call("qnn.dequantize", {x, one, zero});
  const Expr pool = call("nn.avg_pool2d", {real}, {{"pool_size", Ints{2, 2}}});
  EXPECT_THAT(labels(function({x}, pool)), ::testing::Contains("qnn.dequantize+nn.avg_pool2d"));
  EXPECT_THAT(labels(function({x}, call("qnn.quantize", {pool, one, zero}))),
              ::testing::Contains("qnn.dequantize+nn.avg_pool2d+qnn.quantize"));
}

TEST(Rule, WhatFollowsAnAnchorOfOthersIsOfferedToo) {
  const Expr x = var("x", {1, 16, 8, 8}), w = var("w", {16, 16, 3, 3});
  const Expr y = call("nn.conv2d", {x, w}, {{"padding", Ints{1, 1, 1, 1}}});
  const Expr chain = call("nn.relu", {call("tanh", {call("exp", {y})})});
  EXPECT_THAT(labels(function({x, w}, chain)),
              ::testing::UnorderedElementsAreArray(parts_of_chain({"exp", "tanh", "nn.relu"})));
  // However the chain goes on.
  EXPECT_THAT(labels(function({x, w}, call("nn.softmax", {chain}))),
              ::testing::IsSupersetOf(parts_of_chain({"exp", "tanh", "nn.relu"})));
}

TEST(Rule, AGroupAroundAReductionIsCutToo) {
  const Expr x = var("x", {4, 64}), r = var("r", {4, 64});
  const Expr y = call("nn.softmax", {call("exp", {x})});
  EXPECT_THAT(labels(function({x, r}, call("nn.relu", {call("multiply", {y, r})}))),
              ::testing::UnorderedElementsAreArray(
                  parts_of_chain({"exp", "nn.softmax", "multiply", "nn.relu"})));
}

TEST(Rule, ACutLeavesTheOtherBranchInTheKernel) {
  const Expr x = var("x", {4, 64}), y = var("y", {4, 64});
  const Expr a = call("tanh", {call("exp", {x})}), b = call("nn.relu", {call("abs", {y})});
  const auto found = labels(function({x, y}, call("add", {a, b})));
  EXPECT_THAT(found, ::testing::IsSupersetOf({"exp+tanh+abs+nn.relu+add", "exp+tanh", "abs+nn.relu",
                                              "tanh+add", "tanh+abs+nn.relu+add", "nn.relu+add",
                                              "exp+tanh+nn.relu+add", "exp+tanh+add"}));
}

TEST(Rule, OffersAreInProportionToTheGraphAndSayWhereALimitEndsThem) {
  constexpr size_t kCalls = 60, kMost = 24;
  const Expr x = var("x", {4, 64});
  Expr chain = x;
  for (size_t i = 0; i < kCalls; ++i) chain = call("tanh", {chain});
  const DataflowGraph graph(function({x}, chain));
  const std::vector<CandidatePartition> found = candidates(graph);
  EXPECT_LE(found.size(), 3 * kCalls);
  EXPECT_EQ(count_truncated(found), kCalls - kMost) << "each that would reach further up";
  for (const CandidatePartition& candidate : found) {
    EXPECT_LE(candidate.sub_graph.inside().size(), kMost);
    EXPECT_TRUE(!candidate.truncated || candidate.sub_graph.inside().size() == kMost);
  }
}

TEST(Rule, OffersAreInProportionToAGraphOfBranches) {
  const Expr x = var("x", {4, 64});
  Expr value = x;
  size_t calls = 0;
  for (int i = 0; i < 20; ++i, calls += 3)
    value = call("multiply", {call("tanh", {value}), call("nn.relu", {value})});
  EXPECT_LE(labels(function({x}, value)).size(), 5 * calls);
}

// The group behind both convolutions is as large as the larger kernel around one of them.
TEST(Rule, WithoutASearchEpiloguesStayWithTheirAnchors) {
  const Expr x = var("x", {1, 16, 8, 8});
  const auto biased = [&] { return call("nn.bias_add", {conv(x, 16), weights({16})}); };
  const DataflowGraph graph(function({x}, call("nn.relu", {call("add", {biased(), biased()})})));
  std::vector<std::string> kernels;
  for (const CandidatePartition& kernel : partition_lightly(graph, candidates(graph)))
    kernels.push_back(kernel.sub_graph.ops_label(graph));
  EXPECT_THAT(kernels, ::testing::UnorderedElementsAre("nn.conv2d+nn.bias_add",
                                                       "nn.conv2d+nn.bias_add+add+nn.relu"));
}

TEST(Rule, AValueUsedTwiceEndsTheChain) {
  const Expr x = var("x", {1, 16, 8, 8});
  const Expr y = conv(x, 16);
  const auto found = labels(function({x}, call("add", {call("nn.relu", {y}), call("tanh", {y})})));
  EXPECT_THAT(found, ::testing::Contains("nn.conv2d"));
  EXPECT_THAT(found, ::testing::Contains("nn.relu+tanh+add"));
  EXPECT_THAT(found, ::testing::Not(::testing::Contains("nn.conv2d+nn.relu")));
}

TEST(Rule, TwoAnchorsNeverMeet) {
  const Expr x = var("x", {1, 16, 8, 8});
  for (const std::string& label : labels(function({x}, conv(call("nn.relu", {conv(x, 32)}), 16)))) {
    EXPECT_EQ(label.find("nn.conv2d"), label.rfind("nn.conv2d")) << label;
  }
}

TEST(Rule, UnknownOperatorsAreLeftOut) {
  const Expr x = var("x", {4, 6});
  EXPECT_THAT(labels(function({x}, call("cumsum", {call("exp", {x})}))),
              ::testing::Not(::testing::Contains(::testing::HasSubstr("cumsum"))));
}

// Of what writes where indices say nothing is computed anew elsewhere.
TEST(Rule, ScattersStandAlone) {
  const Expr x = var("x", {4, 6}), i = var("i", {3, 6}, DType::kInt64), u = var("u", {3, 6});
  const Expr scattered =
      call("scatter_elements", {call("exp", {x}), i, u}, {{"reduction", std::string("add")}});
  for (const std::string& label : labels(function({x, i, u}, call("tanh", {scattered}))))
    EXPECT_TRUE(label == "scatter_elements" || label.find("scatter") == std::string::npos) << label;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("collage-native-test-{}", getpid())) {
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  }
  ~CacheTest() override { std::filesystem::remove_all(folder_); }

  /// 2x + 1 of 100 elements through a kernel compiled with that folder.
  float compute(float x) {
    const Expr v = var("v", {100});
    const Function f =
        function({v}, call("add", {call("multiply", {v, make_scalar(2.0f)}), make_scalar(1.0f)}));
    const auto backend = make_native_backend();
    const Target target{"native", {}, {}};
    const CompileOptions options{2, folder_.string()};
    auto kernel =
        backend->compile(f, backend->variants(f, target, options).value()[0], target, options);
    if (!kernel.ok()) {
      ADD_FAILURE() << kernel.status().message();
      return 0;
    }
    Tensor in = Tensor::empty(DType::kFloat32, {100}), out = Tensor::empty(DType::kFloat32, {100});
    for (int i = 0; i < 100; ++i) in.data<float>()[i] = x;
    void *from = in.raw(), *to = out.raw();
    EXPECT_TRUE(kernel.value()->run({&from, &to, nullptr}).ok());
    return out.data<float>()[99];
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> result;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      result.push_back(entry.path());
    return result;
  }

  std::filesystem::path folder_;
};

TEST_F(CacheTest, CodeIsKeptAndFoundAgain) {
  EXPECT_EQ(compute(3), 7);
  ASSERT_EQ(files().size(), 1u);
  const auto written = std::filesystem::last_write_time(files()[0]);
  EXPECT_EQ(compute(4), 9);
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(std::filesystem::last_write_time(files()[0]), written);
}

TEST_F(CacheTest, ADamagedFileIsReplaced) {
  EXPECT_EQ(compute(3), 7);
  const auto file = files().at(0);
  const auto size = std::filesystem::file_size(file);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(size / 2));
    stream.write("damage", 6);
  }
  EXPECT_EQ(compute(5), 11);
  EXPECT_EQ(std::filesystem::file_size(files().at(0)), size);
  std::ifstream stream(files().at(0), std::ios::binary);
  std::string found(6, ' ');
  stream.seekg(static_cast<std::streamoff>(size / 2)).read(found.data(), 6);
  EXPECT_NE(found, "damage") << "what was damaged is loaded as it is";
}

TEST_F(CacheTest, AFolderOthersCanWriteIsNotUsed) {
  std::filesystem::permissions(folder_, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(compute(3), 7);
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace collage::native
