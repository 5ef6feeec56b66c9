// Contexts of one artifact: eight threads by 200 runs give the plan's bits, and what they take of
// memory is their arenas.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "artifact/portable_kernels.h"
#include "artifact/write_artifact.h"
#include "backend/memory/kernels/regions_kernel.h"
#include "base/resident_memory.h"
#include "collage/program.h"
#include "runtime/on_threads.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

constexpr int kContexts = 8, kRuns = 200;
constexpr int64_t kCount = 1 << 17, kRows = 32;  // weights are so many rows, 16 MB
const TensorType kRow{{kCount}, DType::kFloat32}, kWeights{{kRows, kCount}, DType::kFloat32};

// y = x by way of the arena, and the first row of the weights.
std::shared_ptr<Plan> wide_plan() {
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", kRow}};
  plan->outputs = {{"y", kRow}, {"first row", kRow}};
  const auto add = [&](Buffer::Place place, size_t index, const TensorType& type) {
    Buffer& buffer = plan->buffers.emplace_back();
    buffer.place = place;
    buffer.index = index;
    buffer.type = type;
    buffer.encoding = plain_encoding(type);
    buffer.bytes = type.bytes();
  };
  add(Buffer::Place::kInput, 0, kRow);
  add(Buffer::Place::kArena, 0, kRow);
  add(Buffer::Place::kOutput, 0, kRow);
  add(Buffer::Place::kConstant, 0, kWeights);
  add(Buffer::Place::kOutput, 1, kRow);
  std::vector<float> weights(static_cast<size_t>(kRows * kCount));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 1021);
  plan->buffers[3].constant = Tensor::from<float>(kWeights.shape, weights);
  plan->arena_bytes = kRow.bytes();
  const auto copy = [] { return memory::make_copy_kernel(kRow.bytes()); };
  plan->steps.push_back({"in", "", copy(), {0}, {1}});
  plan->steps.push_back({"out", "", copy(), {1}, {2}});
  plan->steps.push_back({"row", "", copy(), {3}, {4}});
  return plan;
}

bool same_bits(const Tensor& tensor, const void* expected) {
  return std::memcmp(tensor.raw(), expected, kRow.bytes()) == 0;
}

TEST(Contexts, GiveTheSameBitsAndTakeTheirArenas) {
  register_portable_kernels();
  const fs::path path =
      fs::temp_directory_path() / ("collage_contexts_" + std::to_string(::getpid()) + ".collage");
  const std::shared_ptr<Plan> plan = wide_plan();
  const Status written = write_artifact(path, *plan, {1, "wide.onnx"}, {});
  ASSERT_TRUE(written.ok()) << written.to_string();
  Result<Program> artifact = Program::load(path);
  fs::remove(path);  // what is mapped stays
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  std::vector<std::vector<Tensor>> inputs, outputs;
  for (int c = 0; c < kContexts; ++c) {
    inputs.push_back({Tensor::from<float>(
        kRow.shape, std::vector<float>(static_cast<size_t>(kCount), static_cast<float>(c)))});
    outputs.push_back(
        {Tensor::zeros(kRow.dtype, kRow.shape), Tensor::zeros(kRow.dtype, kRow.shape)});
  }
  std::vector<std::string> failures(kContexts);
  // Stacks of threads that ended are kept for others.
  testing::on_threads(kContexts, [&](int t) { failures[static_cast<size_t>(t)].reserve(1000); });
  const size_t before = anonymous_bytes();
  std::vector<Context> contexts;
  for (int c = 0; c < kContexts; ++c) {
    Result<Context> made = artifact->make_context();
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    contexts.push_back(std::move(made).value());
  }
  testing::on_threads(kContexts, [&](int t) {
    const auto own = static_cast<size_t>(t);
    for (int run = 0; run < kRuns && failures[own].empty(); ++run) {
      std::memset(outputs[own][run % 2].raw(), 1, kRow.bytes());
      const Status status = contexts[own].run(inputs[own], outputs[own]);
      if (!status.ok())
        failures[own] = status.to_string();
      else if (!same_bits(outputs[own][0], inputs[own][0].raw()) ||
               !same_bits(outputs[own][1], plan->buffers[3].constant.raw()))
        failures[own] = "run " + std::to_string(run) + " gives other bits";
    }
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  const size_t now = anonymous_bytes();
  if (now == 0) GTEST_SKIP() << "/proc says nothing of memory";
  // Arenas lie on pages of 2 MB; threads and allocators may take some more. Of the weights, no
  // context takes a copy.
  constexpr size_t kSlack = size_t{6} << 20;
  EXPECT_LE(now, before + kContexts * plan->arena_bytes + kSlack);
  EXPECT_LT(kContexts * plan->arena_bytes + kSlack, kWeights.bytes());
}

}  // namespace
}  // namespace collage
