// What native offers: which candidates the rule finds, and how compiled code is kept.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/native/native_backend.h"
#include "check.h"
#include "partition/dataflow_graph.h"

namespace collage::native {
namespace {

std::vector<std::string> labels(const Function& function) {
  const DataflowGraph graph(function);
  const auto backend = make_native_backend();
  const Target target{"native", {}, {}};
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"native", backend->partition_rule(target), target});
  std::vector<std::string> result;
  for (const CandidatePartition& candidate : spec->rule->all_candidates(graph, spec))
    result.push_back(candidate.sub_graph.ops_label(graph));
  return result;
}

Expr conv(const Expr& x, int64_t channels) {
  return call("nn.conv2d", {x, weights({channels, x->tensor_type().shape[1], 3, 3})},
              {{"padding", Ints{1, 1, 1, 1}}});
}

TEST(Rule, AnActivationBelongsToItsAnchor) {
  const Expr x = var("x", {1, 16, 8, 8}), r = var("r", {1, 16, 8, 8});
  const Expr y = call("nn.bias_add", {conv(x, 16), weights({16})});
  EXPECT_THAT(labels(function({x}, call("nn.relu", {y}))),
              testing::ElementsAre("nn.conv2d+nn.bias_add+nn.relu"));
  EXPECT_THAT(
      labels(function({x, r}, call("nn.relu", {call("add", {y, r})}))),
      testing::UnorderedElementsAre("nn.conv2d+nn.bias_add", "nn.conv2d+nn.bias_add+add+nn.relu",
                                    "add", "nn.relu", "add+nn.relu"));
}

TEST(Rule, AValueUsedTwiceEndsTheChain) {
  const Expr x = var("x", {1, 16, 8, 8});
  const Expr y = conv(x, 16);
  const auto found = labels(function({x}, call("add", {call("nn.relu", {y}), call("tanh", {y})})));
  EXPECT_THAT(found, testing::Contains("nn.conv2d"));
  EXPECT_THAT(found, testing::Contains("nn.relu+tanh+add"));
  EXPECT_THAT(found, testing::Not(testing::Contains("nn.conv2d+nn.relu")));
}

TEST(Rule, TwoAnchorsNeverMeet) {
  const Expr x = var("x", {1, 16, 8, 8});
  for (const std::string& label : labels(function({x}, conv(call("nn.relu", {conv(x, 32)}), 16)))) {
    EXPECT_EQ(label.find("nn.conv2d"), label.rfind("nn.conv2d")) << label;
  }
}

TEST(Rule, UnknownOperatorsAreLeftOut) {
  const Expr x = var("x", {4, 6}), i = var("i", {3}, DType::kInt64);
  EXPECT_THAT(labels(function({x, i}, call("take", {x, i}, {{"axis", int64_t{0}}}))),
              testing::IsEmpty());
}

class CacheTest : public testing::Test {
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
