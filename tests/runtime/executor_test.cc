#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

namespace collage {
namespace {

// out = factor * in + workspace trick: copies through the workspace, so that a wrong workspace
// shows.
class ScaleKernel : public Kernel {
 public:
  ScaleKernel(float factor, int64_t count, ThreadUse use)
      : factor_(factor), count_(count), use_(use) {}
  Status run(const KernelArgs& args) override {
    auto* in = static_cast<const float*>(args.inputs[0]);
    auto* out = static_cast<float*>(args.outputs[0]);
    auto* space = static_cast<float*>(args.workspace);
    for (int64_t i = 0; i < count_; ++i) space[i] = in[i] * factor_;
    for (int64_t i = 0; i < count_; ++i) out[i] = space[i];
    if (factor_ == 0) return bad_model("factor is zero");
    return {};
  }
  size_t workspace_bytes() const override { return static_cast<size_t>(count_) * 4; }
  ThreadUse thread_use() const override { return use_; }

 private:
  float factor_;
  int64_t count_;
  ThreadUse use_;
};

// x -> *2 -> (own pool) *3 -> y
std::shared_ptr<Plan> chain(float last_factor) {
  TensorType type{{8}, DType::kFloat32};
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", type}};
  plan->outputs = {{"y", type}};
  auto buffer = [&](Buffer::Place place, size_t offset) {
    Buffer b;
    b.place = place;
    b.offset = offset;
    b.bytes = 32;
    b.type = type;
    plan->buffers.push_back(b);
  };
  buffer(Buffer::Place::kInput, 0);
  buffer(Buffer::Place::kArena, 0);
  buffer(Buffer::Place::kOutput, 0);
  plan->steps.push_back(
      {"double", "a", std::make_shared<ScaleKernel>(2.f, 8, ThreadUse::kTeam), {0}, {1}, 64});
  plan->steps.push_back({"last",
                         "b",
                         std::make_shared<ScaleKernel>(last_factor, 8, ThreadUse::kOwnPool),
                         {1},
                         {2},
                         64});
  plan->arena_bytes = 128;
  return plan;
}

TEST(Executor, RunsStepsInOrderAndAllocatesOutputs) {
  Result<Executor> executor = Executor::create(chain(3.f), 2);
  ASSERT_TRUE(executor.ok());
  Tensor x = Tensor::from<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Tensor> outputs(1);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(executor->run(std::span<const Tensor>(&x, 1), outputs).ok());
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(outputs[0].data<float>()[i], 6.f * static_cast<float>(i + 1));
}

TEST(Executor, UnalignedTensorsAreStaged) {
  Result<Executor> executor = Executor::create(chain(3.f), 1);
  ASSERT_TRUE(executor.ok());
  std::vector<float> in(40, 1.f), out(40, 0.f);
  Tensor x = Tensor::borrow(DType::kFloat32, {8}, in.data() + 1);
  std::vector<Tensor> outputs{Tensor::borrow(DType::kFloat32, {8}, out.data() + 1)};
  ASSERT_TRUE(executor->run(std::span<const Tensor>(&x, 1), outputs).ok());
  EXPECT_EQ(out[0], 0.f);
  EXPECT_EQ(out[1], 6.f);
  EXPECT_EQ(out[8], 6.f);
  EXPECT_EQ(out[9], 0.f);
}

TEST(Executor, UnalignedTensorsAreThoseOfEachRun) {
  Result<Executor> executor = Executor::create(chain(3.f), 1);
  ASSERT_TRUE(executor.ok());
  std::vector<float> in(40, 1.f), out(40, 0.f);
  Tensor x = Tensor::borrow(DType::kFloat32, {8}, in.data() + 1);
  std::vector<Tensor> outputs{Tensor::borrow(DType::kFloat32, {8}, out.data() + 1)};
  for (const float value : {1.f, 2.f, 3.f}) {
    std::fill(in.begin(), in.end(), value);
    ASSERT_TRUE(executor->run(std::span<const Tensor>(&x, 1), outputs).ok());
    EXPECT_EQ(out[1], 6.f * value);
    EXPECT_EQ(out[8], 6.f * value);
  }
}

TEST(Executor, WalksOverStepsThatTheCallerRuns) {
  const std::shared_ptr<Plan> plan = chain(3.f);
  Result<Executor> executor = Executor::create(plan, 1);
  ASSERT_TRUE(executor.ok());
  std::vector<float> in(40, 1.f), out(40, 0.f);  // not aligned
  Tensor x = Tensor::borrow(DType::kFloat32, {8}, in.data() + 1);
  std::vector<Tensor> outputs{Tensor::borrow(DType::kFloat32, {8}, out.data() + 1)};
  std::vector<size_t> seen;
  const auto thrice = [&](size_t step, const KernelArgs& args) {
    seen.push_back(step);
    for (int i = 0; i < 3; ++i)
      if (Status status = plan->steps[step].kernel->run(args); !status.ok()) return status;
    return Status();
  };
  ASSERT_TRUE(executor->walk(std::span<const Tensor>(&x, 1), outputs, thrice).ok());
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(out[1], 6.f);
  EXPECT_EQ(out[8], 6.f);
  EXPECT_EQ(out[9], 0.f);
  const auto fails = [](size_t, const KernelArgs&) -> Status { return internal_error("enough"); };
  EXPECT_EQ(executor->walk(std::span<const Tensor>(&x, 1), outputs, fails).to_string(),
            "double: enough");
}

TEST(Executor, WrongShapesAndKernelFailuresAreErrors) {
  Result<Executor> executor = Executor::create(chain(0.f), 2);
  ASSERT_TRUE(executor.ok());
  Tensor wrong = Tensor::zeros(DType::kFloat32, {9});
  std::vector<Tensor> outputs(1);
  EXPECT_EQ(executor->run(std::span<const Tensor>(&wrong, 1), outputs).to_string(),
            "input 'x': expected float32 (8), got float32 (9)");
  Tensor x = Tensor::zeros(DType::kFloat32, {8});
  EXPECT_EQ(executor->run(std::span<const Tensor>(&x, 1), outputs).to_string(),
            "last: factor is zero");
}

TEST(Executor, AnArenaThatCannotBeHadIsAnError) {
  const std::shared_ptr<Plan> plan = chain(3.f);
  plan->arena_bytes = size_t{1} << 44;  // which could be mapped, not used
  const Result<Executor> executor = Executor::create(plan, 1);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.status().code(), ErrorCode::kUnavailable);
}

TEST(ThreadTeam, RunsOnAsManyThreadsAsAskedFor) {
  for (const int size : {1, 2, 3}) {
    ThreadTeam team(size);
    std::vector<std::atomic<int>> seen(8);
    team.run([&](int index) { ++seen.at(static_cast<size_t>(index)); });
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(seen[static_cast<size_t>(i)].load(), i < size ? 1 : 0) << i << " of " << size;
  }
}

TEST(ThreadTeam, RunsOnEveryThreadAndParksTheOthers) {
  ThreadTeam team(2);
  std::vector<int> seen(2, 0);
  team.run([&](int index) { seen[static_cast<size_t>(index)] += 1; });
  EXPECT_EQ(seen, (std::vector<int>{1, 1}));
  int count = 0;
  for (int i = 0; i < 100; ++i) team.park([&] { ++count; });
  EXPECT_EQ(count, 100);
  EXPECT_THROW(team.park([] { throw std::runtime_error("x"); }), std::runtime_error);
}

}  // namespace
}  // namespace collage
