// Plans run from any thread of the application: with the team they were made for, one run at a
// time.
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "runtime/executor.h"
#include "runtime/on_threads.h"

namespace collage {
namespace {

using testing::on_threads;

constexpr int kThreads = 8, kRuns = 200;
constexpr int64_t kCount = 512;

// out = in + 1 by a team, with a part of the workspace for each of its `threads`, as kernels have
// that were compiled for so many.
class TeamKernel : public Kernel {
 public:
  explicit TeamKernel(int threads) : threads_(threads) {}
  Status run(const KernelArgs& args) override {
    if (omp_get_max_threads() != threads_)
      return internal_error("the team has {} threads, not {}", omp_get_max_threads(), threads_);
    int team = 0;
#pragma omp parallel
    {
#pragma omp single
      team = omp_get_num_threads();
      if (omp_get_thread_num() < threads_) add_one(args, omp_get_thread_num());
    }
    if (team != threads_) return internal_error("{} threads came, not {}", team, threads_);
    return {};
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(threads_ * kCount) * sizeof(float);
  }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

 private:
  void add_one(const KernelArgs& args, int thread) const {
    const float* in = static_cast<const float*>(args.inputs[0]);
    float* own = static_cast<float*>(args.workspace) + thread * kCount;
    const int64_t begin = kCount * thread / threads_, end = kCount * (thread + 1) / threads_;
    for (int64_t i = begin; i < end; ++i) own[i] = in[i] + 1;
    std::this_thread::yield();  // so that another run has time to get in between
    for (int64_t i = begin; i < end; ++i) static_cast<float*>(args.outputs[0])[i] = own[i];
  }

  int threads_;
};

// The same on the calling thread, as if with threads of its own: the team is parked meanwhile.
class OwnPoolKernel : public Kernel {
 public:
  Status run(const KernelArgs& args) override {
    for (int64_t i = 0; i < kCount; ++i)
      static_cast<float*>(args.outputs[0])[i] = static_cast<const float*>(args.inputs[0])[i] + 1;
    return {};
  }
  ThreadUse thread_use() const override { return ThreadUse::kOwnPool; }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
};

// The same through memory of its own, which two runs at once would disturb; a constant is shared.
class KeepingKernel : public Kernel {
 public:
  explicit KeepingKernel(std::shared_ptr<const float> one) : one_(std::move(one)), kept_(kCount) {}
  Status run(const KernelArgs& args) override {
    for (size_t i = 0; i < kept_.size(); ++i)
      kept_[i] = static_cast<const float*>(args.inputs[0])[i] + *one_;
    std::this_thread::yield();
    for (size_t i = 0; i < kept_.size(); ++i) static_cast<float*>(args.outputs[0])[i] = kept_[i];
    return {};
  }
  Result<std::shared_ptr<Kernel>> twin() const override {
    return std::shared_ptr<Kernel>(std::make_shared<KeepingKernel>(one_));
  }

 private:
  std::shared_ptr<const float> one_;
  std::vector<float> kept_;
};

// x -> team -> own pool -> team -> y = x + 3, through the arena.
std::shared_ptr<Plan> plan_for(int threads) {
  const TensorType type{{kCount}, DType::kFloat32};
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", type}};
  plan->outputs = {{"y", type}};
  const size_t bytes = static_cast<size_t>(kCount) * sizeof(float);
  const auto buffer = [&](Buffer::Place place, size_t offset) {
    Buffer& made = plan->buffers.emplace_back();
    made.place = place;
    made.offset = offset;
    made.bytes = bytes;
    made.type = type;
  };
  buffer(Buffer::Place::kInput, 0);
  buffer(Buffer::Place::kArena, 0);
  buffer(Buffer::Place::kArena, bytes);
  buffer(Buffer::Place::kOutput, 0);
  plan->steps.push_back({"first", "a", std::make_shared<TeamKernel>(threads), {0}, {1}, 2 * bytes});
  plan->steps.push_back({"second", "b", std::make_shared<OwnPoolKernel>(), {1}, {2}, 0});
  plan->steps.push_back({"third", "a", std::make_shared<TeamKernel>(threads), {2}, {3}, 2 * bytes});
  plan->arena_bytes = bytes * static_cast<size_t>(2 + threads);
  return plan;
}

// "" where a run gives x + 3 for x of nothing but `value`, else what it gives.
std::string run_once(Executor& executor, float value) {
  Tensor x = Tensor::from<float>({kCount}, std::vector<float>(kCount, value));
  std::vector<Tensor> outputs(1);
  const Status status = executor.run(std::span<const Tensor>(&x, 1), outputs);
  if (!status.ok()) return status.to_string();
  for (float y : outputs[0].values<float>())
    if (y != value + 3) return fmt::format("{} + 3 = {}", value, y);
  return "";
}

TEST(TeamScope, IsOfTheThreadAndGoesAgain) {
  on_threads(1, [](int) {
    omp_set_num_threads(5);
    {
      const TeamScope three(3);
      EXPECT_EQ(omp_get_max_threads(), 3);
      const TeamScope none(0);
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), 5);
  });
}

TEST(ThreadTeam, LeavesTheCallersTeamAlone) {
  on_threads(1, [](int) {
    omp_set_num_threads(5);
    ThreadTeam team(2);
    std::atomic<int> came{0};
    team.run([&](int) { ++came; });
    team.park([] {});
    EXPECT_EQ(came, 2);
    EXPECT_EQ(omp_get_max_threads(), 5);
  });
}

TEST(RunWithTeam, HasATeamInsideTheCallersRegionToo) {
  std::vector<int> seen(2, 0);
  std::vector<int> caught(2, 0);
#pragma omp parallel num_threads(2)
  {
    const size_t index = static_cast<size_t>(omp_get_thread_num());
    const Status counted = run_with_team(3, [&] {
#pragma omp parallel
#pragma omp atomic
      ++seen[index];
      return Status();
    });
    EXPECT_TRUE(counted.ok());
    try {
      const Status thrown = run_with_team(3, []() -> Status { throw std::runtime_error("x"); });
    } catch (const std::runtime_error&) {
      caught[index] = 1;
    }
  }
  EXPECT_EQ(seen, (std::vector<int>{3, 3}));
  EXPECT_EQ(caught, (std::vector<int>{1, 1}));
}

TEST(ExecutorOnThreads, EachProgramHasItsTeamOnEveryThread) {
  std::vector<Executor> executors;
  for (int t = 0; t < kThreads; ++t)
    executors.push_back(Executor::create(plan_for(1 + t % 4), 1 + t % 4).value());
  std::vector<std::string> failures(kThreads);
  on_threads(kThreads, [&](int t) {
    omp_set_num_threads(1 + (t + 1) % 4);  // the application's own
    const int before = omp_get_max_threads();
    for (int run = 0; run < kRuns && failures[t].empty(); ++run)
      failures[t] = run_once(executors[t], static_cast<float>(run));
    if (omp_get_max_threads() != before) failures[t] += "the caller's team is another now";
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(ExecutorOnThreads, RunsOfOneProgramTakeTurns) {
  for (int threads : {1, 2}) {
    Executor executor = Executor::create(plan_for(threads), threads).value();
    std::vector<std::string> failures(kThreads);
    on_threads(kThreads, [&](int t) {
      for (int run = 0; run < kRuns && failures[t].empty(); ++run)
        failures[t] = run_once(executor, static_cast<float>(1000 * t + run));
    });
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  }
}

// Executors of one plan, some made while others run, and the plan's own kernels beside them.
TEST(ExecutorOnThreads, TwinsOfOnePlanRunAtOnce) {
  for (int threads : {1, 2}) {
    const std::shared_ptr<Plan> plan = plan_for(threads);
    plan->steps[2].kernel = std::make_shared<KeepingKernel>(std::make_shared<const float>(1));
    Executor own = Executor::create(plan, threads).value();
    std::vector<std::string> failures(kThreads);
    on_threads(kThreads, [&](int t) {
      const auto place = static_cast<size_t>(t);
      std::optional<Executor> beside;
      for (int run = 0; run < kRuns && failures[place].empty(); ++run) {
        if (run % 20 == 0) {
          Result<Executor> made = Executor::create_beside(plan, threads);
          if (!made) {
            failures[place] = made.status().to_string();
            return;
          }
          beside.emplace(std::move(made).value());
        }
        failures[place] = run_once(t == 0 ? own : *beside, static_cast<float>(1000 * t + run));
      }
    });
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  }
}

TEST(ExecutorOnThreads, KernelsWithoutATwinAreNamed) {
  class Alone : public OwnPoolKernel {
    Result<std::shared_ptr<Kernel>> twin() const override { return Kernel::twin(); }
  };
  const std::shared_ptr<Plan> plan = plan_for(1);
  EXPECT_TRUE(Executor::create_beside(plan, 1).ok());
  plan->steps[1].kernel = std::make_shared<Alone>();
  const Status status = Executor::create_beside(plan, 1).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(status.to_string(), "second (b): its kernels run once at a time");
}

TEST(ExecutorOnThreads, RunsInsideTheCallersRegion) {
  Executor executor = Executor::create(plan_for(3), 3).value();
  std::vector<std::string> failures(2);
#pragma omp parallel num_threads(2)
  failures[static_cast<size_t>(omp_get_thread_num())] =
      run_once(executor, static_cast<float>(omp_get_thread_num()));
  EXPECT_EQ(failures, std::vector<std::string>(2));
}

}  // namespace
}  // namespace collage
