// The plan against what each toolchain's own partition would be, by costs that are made up: the
// choice is never dearer, whatever kernels cost.
#include <gmock/gmock.h>

#include "base/hash.h"
#include "compiler/given_model.h"

namespace collage {
namespace {

// Each kernel costs what its text and a seed say: between 10 and 100 µs.
class HashedCosts : public CostModel {
 public:
  explicit HashedCosts(int seed) : seed_(std::to_string(seed)) {}
  std::optional<double> kernel_seconds(const Kernel& kernel) override {
    const std::string hash = sha256_hex(seed_ + kernel.function + kernel.target);
    return 1e-5 + 9e-5 * std::stoi(hash.substr(0, 4), nullptr, 16) / 65536.0;
  }
  std::optional<double> conversion_seconds(const Conversion&) override { return 1e-6; }

 private:
  const std::string seed_;
};

constexpr const char* kModels[] = {
    // A residual block.
    R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 10, 10), float32], %w: Tensor[(8, 8, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  nn.relu(add(%2, %x))
}
)",
    // Two products with a gate.
    R"(#[version = "0.0.5"]
def @main(%x: Tensor[(8, 32), float32], %w: Tensor[(48, 32), float32], %v: Tensor[(32, 48), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = multiply(%0, sigmoid(%0));
  nn.dense(%1, %v)
}
)",
    // Branches.
    R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 12, 12), float32], %w: Tensor[(8, 8, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, channels=8, kernel_size=[1, 1]);
  %1 = nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1]);
  %2 = tanh(%1);
  concatenate((nn.relu(%0), %2), axis=1)
}
)",
    // Nothing but element-wise operators, and a reduction.
    R"(#[version = "0.0.5"]
def @main(%x: Tensor[(16, 64), float32]) {
  %0 = exp(%x);
  %1 = floor(tanh(%0));
  nn.softmax(add(%1, %x))
}
)"};

class OwnPartitions : public testing::GivenModel, public ::testing::WithParamInterface<size_t> {
 protected:
  OwnPartitions() : GivenModel(kModels[GetParam()]) {}
};

TEST_P(OwnPartitions, AreNeverCheaperThanThePlan) {
  for (int seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    options_.cost_model = std::make_shared<HashedCosts>(seed);
    options_.database = folder_ / (std::to_string(seed) + ".db");
    const Result<Program> program = compile_model(model_of(given_), options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const CompileReport& report = program->impl().report;
    std::vector<std::string> compared;
    for (const ReportedPlan& cover : report.covers) {
      if (cover.origin != "own partition") continue;
      compared.push_back(cover.name);
      EXPECT_GE(cover.predicted_seconds, report.covers.at(0).predicted_seconds - 1e-9)
          << cover.name;
      EXPECT_TRUE(cover.measured.has_value()) << "it is raced: " << cover.failure;
    }
    EXPECT_THAT(compared, ::testing::UnorderedElementsAre("onednn first", "native first"));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OwnPartitions, ::testing::Range(size_t{0}, std::size(kModels)));

}  // namespace
}  // namespace collage
