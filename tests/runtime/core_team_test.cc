// Threads on cores of their own, kernels that run there, and plans whose steps run beside others.
#include "runtime/core_team.h"

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <thread>

#include "runtime/awaited_steps.h"
#include "runtime/executor.h"
#include "runtime/in_child.h"
#include "runtime/team_region.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using testing::in_child;
using ::testing::IsEmpty;

// The last core that this process may use, or that and the one before it.
Cores last_cores(int count = 1) {
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  std::string text;
  for (int core = CPU_SETSIZE; core-- > 0 && count > 0;)
    if (CPU_ISSET(core, &own)) {
      text += (text.empty() ? "" : "+") + std::to_string(core);
      --count;
    }
  return *Cores::parse(text);
}

std::string affinity_of_thread() {
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &own)) text += (text.empty() ? "" : "+") + std::to_string(core);
  return Cores::parse(text)->to_string();
}

TEST(Cores, TextIsOfRanges) {
  for (const auto& [text, canonical] : std::vector<std::pair<const char*, const char*>>{
           {"0", "0"}, {"2-3", "2-3"}, {"6+0-1", "0-1+6"}, {"1+0+1", "0-1"}, {"4-4", "4"}}) {
    const Result<Cores> cores = Cores::parse(text);
    ASSERT_TRUE(cores.ok()) << text;
    EXPECT_EQ(cores->to_string(), canonical);
  }
  EXPECT_EQ(Cores::parse("0-1+6")->count(), 3);
  for (const char* text : {"", "x", "-1", "3-2", "1-", "1+", "1,2", "99999", "0x1"})
    EXPECT_EQ(Cores::parse(text).status().to_string(),
              "'" + std::string(text) +
                  "' states no cores: expected NUMBER or FIRST-LAST, joined by '+'");
}

TEST(Cores, ThatAreNotThereAreTold) {
  const std::string before = affinity_of_thread();
  EXPECT_TRUE(last_cores().check_available().ok());
  EXPECT_EQ(Cores::parse("1023")->check_available().to_string(),
            "this process cannot use the cores 1023");
  EXPECT_EQ(affinity_of_thread(), before);
}

// The threads that compute a region, by what they are bound to.
std::multiset<std::string> threads_of_region() {
  std::mutex mutex;
  std::multiset<std::string> threads;
  struct Data {
    std::mutex& mutex;
    std::multiset<std::string>& threads;
  } data{mutex, threads};
  const auto body = [](void* at) {
    Data& own = *static_cast<Data*>(at);
    const std::lock_guard lock(own.mutex);
    own.threads.insert(affinity_of_thread());
  };
  {
    const TeamRegion region(body, &data, 0);
    body(&data);
  }
  return threads;
}

TEST(CoreTeam, ComputesOnItsCoresAlone) {
  for (const int count : {1, 2}) {
    const Cores cores = last_cores(count);
    std::multiset<std::string> threads;
    CoreTask task([&]() -> Status {
      threads = threads_of_region();
      return {};
    });
    CoreTeam::of(cores).begin(task);
    ASSERT_TRUE(task.wait().ok());
    ASSERT_EQ(threads.size(), static_cast<size_t>(cores.count()));
    for (const std::string& bound : threads)
      EXPECT_EQ(Cores::parse(cores.to_string() + "+" + bound)->to_string(), cores.to_string());
    EXPECT_GE(threads.count(cores.to_string()), 1u) << "the leader, which may help";
  }
}

TEST(CoreTeam, DoesItsTasksInTurnAndGivesTheirStatus) {
  const Cores cores = last_cores();
  std::vector<int> order;
  std::vector<std::unique_ptr<CoreTask>> tasks;
  for (int i = 0; i < 50; ++i)
    tasks.push_back(std::make_unique<CoreTask>([&order, i]() -> Status {
      order.push_back(i);
      return i == 7 ? bad_model("seven") : Status();
    }));
  for (int times = 0; times < 2; ++times) {
    for (const auto& task : tasks) CoreTeam::of(cores).begin(*task);
    for (size_t i = tasks.size(); i-- > 0;)
      EXPECT_EQ(tasks[i]->wait().to_string(), i == 7 ? "seven" : "ok");
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i % 50);
}

TEST(CoreTeam, TasksAreOfTheRunThatGivesThem) {
  const RunNumber number(41);
  LoopIteration iteration;
  iteration.begin(3);
  const uint64_t own = RunNumber::current();
  uint64_t there = 0;
  CoreTask task([&]() -> Status {
    there = RunNumber::current();
    return RunNumber::of_user() == 41 ? Status() : bad_model("no user's run");
  });
  CoreTeam::of(last_cores()).begin(task);
  EXPECT_TRUE(task.wait().ok());
  EXPECT_EQ(there, own);
}

// As a function of a library does that runs another program.
TEST(CoreTeam, ATaskMayGiveItsTeamAnotherOne) {
  CoreTeam& team = CoreTeam::of(last_cores());
  CoreTask outer([&]() -> Status {
    CoreTask inner([]() -> Status { return bad_model("inner"); });
    team.begin(inner);
    return inner.wait();
  });
  team.begin(outer);
  EXPECT_EQ(outer.wait().to_string(), "inner");
}

TEST(CoreTeam, AChildProcessHasItsOwn) {
  const auto computes = [] {
    CoreTask task([]() -> Status { return {}; });
    CoreTeam::of(last_cores()).begin(task);
    return task.wait().ok() ? 0 : 1;
  };
  EXPECT_EQ(computes(), 0);
  EXPECT_EQ(in_child(computes), 0);
}

// Calls a function; that gives its output, one number, from its inputs.
class Calling : public Kernel {
 public:
  using Body = std::function<Result<float>(const float* const* inputs)>;
  explicit Calling(Body body) : body_(std::move(body)) {}
  Status run(const KernelArgs& args) override {
    *static_cast<float*>(args.outputs[0]) =
        TRY(body_(reinterpret_cast<const float* const*>(args.inputs)));
    return {};
  }

 private:
  const Body body_;
};

// Buffers of one number each.
struct Numbers {
  BufferId buffer(Buffer::Place place, size_t index = 0) {
    Buffer buffer;
    buffer.place = place;
    buffer.index = index;
    if (place == Buffer::Place::kArena) buffer.offset = std::exchange(arena, arena + 64);
    buffer.bytes = 4;
    buffer.type = {{1}, DType::kFloat32};
    plan->buffers.push_back(buffer);
    return plan->buffers.size() - 1;
  }
  BufferId step(
      const std::string& name, const Cores& cores, std::vector<BufferId> inputs, BufferId output,
      Calling::Body body = [](auto) { return 0.f; }) {
    Step step;
    step.name = name;
    step.kernel = std::make_shared<Calling>(std::move(body));
    if (!cores.empty()) step.kernel = std::make_shared<CoreKernel>(step.kernel, cores);
    step.inputs = std::move(inputs);
    step.outputs = {output};
    plan->steps.push_back(std::move(step));
    return output;
  }
  // Runs it on x = 1; gives y, or the error.
  std::string run(bool profiled = false) {
    plan->inputs = {{"x", {{1}, DType::kFloat32}}};
    plan->outputs = {{"y", {{1}, DType::kFloat32}}};
    plan->arena_bytes = arena;
    Result<Executor> executor = Executor::create(plan, 1);
    const std::vector<Tensor> inputs{Tensor::from<float>({1}, {1.f})};
    std::vector<Tensor> outputs(1);
    std::vector<double> seconds;
    const Status status = profiled ? executor->run_profiled(inputs, outputs, seconds)
                                   : executor->run(inputs, outputs);
    return status.ok() ? std::to_string(static_cast<int>(outputs[0].data<float>()[0]))
                       : status.to_string();
  }
  std::shared_ptr<Plan> plan = std::make_shared<Plan>();
  size_t arena = 0;
};
using Where = Buffer::Place;

TEST(StepsOnCores, ReadWhatOthersWroteAndTheOtherWayRound) {
  for (const bool profiled : {false, true}) {
    Numbers n;
    const BufferId x = n.buffer(Where::kInput);
    const auto late = [](float factor) {
      return [factor](const float* const* in) -> Result<float> {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return factor * in[0][0];
      };
    };
    const BufferId a = n.step("a", last_cores(), {x}, n.buffer(Where::kArena), late(2));
    const BufferId b = n.step("b", {}, {a}, n.buffer(Where::kArena), late(3));
    const BufferId c = n.step("c", last_cores(2), {b}, n.buffer(Where::kArena), late(5));
    const BufferId d = n.step("d", last_cores(), {c}, n.buffer(Where::kArena), late(7));
    n.step("e", last_cores(), {d}, n.buffer(Where::kOutput), late(11));
    EXPECT_EQ(n.run(profiled), "2310");
    EXPECT_EQ(n.run(profiled), "2310");
  }
}

// Each of two steps waits until the other one has begun.
TEST(StepsOnCores, RunBesideThoseThatTheyDoNotDependOn) {
  Numbers n;
  std::atomic<int> begun{0};
  const auto meet = [&](const float* const*) -> Result<float> {
    ++begun;
    for (int i = 0; i < 20000 && begun < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return begun == 2 ? Result<float>(1.f) : bad_model("alone");
  };
  const BufferId x = n.buffer(Where::kInput);
  const BufferId a = n.step("a", last_cores(), {x}, n.buffer(Where::kArena), meet);
  const BufferId b = n.step("b", {}, {x}, n.buffer(Where::kArena), meet);
  n.step("sum", {}, {a, b}, n.buffer(Where::kOutput),
         [](const float* const* in) -> Result<float> { return in[0][0] + in[1][0]; });
  EXPECT_EQ(n.run(), "2");
}

TEST(StepsOnCores, FailByTheirOwnName) {
  Numbers n;
  const BufferId x = n.buffer(Where::kInput);
  const BufferId a = n.step("a", last_cores(), {x}, n.buffer(Where::kArena),
                            [](const float* const*) -> Result<float> { return bad_model("no"); });
  const BufferId b = n.step("b", last_cores(2), {a}, n.buffer(Where::kArena));
  n.step("c", {}, {b}, n.buffer(Where::kOutput));
  EXPECT_EQ(n.run(), "a: no");
  EXPECT_EQ(n.run(true), "a: no");
}

TEST(AwaitedSteps, AreThoseThatShareMemoryUnlessBothRead) {
  Numbers n;
  const Cores one = last_cores(), other = *Cores::parse("1000");
  const BufferId x = n.buffer(Where::kInput), y = n.buffer(Where::kOutput);
  const BufferId a = n.step("0", one, {x}, n.buffer(Where::kArena));
  const BufferId b = n.step("1", one, {a}, n.buffer(Where::kArena));
  n.step("2 reads x too", {}, {x}, n.buffer(Where::kArena));
  n.step("3 reads b", {}, {b}, n.buffer(Where::kArena));
  n.step("4 reads a and b: the later step is enough", {}, {a, b}, n.buffer(Where::kArena));
  n.step("5 of the same team", one, {a}, n.buffer(Where::kArena));
  n.step("6 of another team", other, {a}, n.buffer(Where::kArena));
  n.step("7 writes what 5 and 6 read", {}, {x}, a);
  n.step("8 reads two teams' results", {},
         {n.plan->steps[5].outputs[0], n.plan->steps[6].outputs[0]}, y);
  EXPECT_THAT(awaited_steps(*n.plan),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre(1), ElementsAre(1),
                          IsEmpty(), ElementsAre(0), ElementsAre(5, 6), ElementsAre(5, 6)));
}

TEST(AwaitedSteps, LookIntoPartsAndWorkspaces) {
  Numbers n;
  const Cores one = last_cores();
  const BufferId x = n.buffer(Where::kInput), whole = n.buffer(Where::kArena);
  n.plan->buffers[whole].bytes = 128;
  const BufferId part = n.buffer(Where::kPart, whole), rest = n.buffer(Where::kPart, whole);
  n.plan->buffers[rest].offset = 64;
  n.step("0", one, {x}, part);
  n.step("1 beside it", {}, {x}, rest);
  n.step("2 of the whole", {}, {whole}, n.buffer(Where::kOutput));
  EXPECT_THAT(awaited_steps(*n.plan), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0)));

  class Working : public Calling {
   public:
    using Calling::Calling;
    size_t workspace_bytes() const override { return 64; }
  };
  n.plan->steps[1].kernel = std::make_shared<Working>([](auto) { return 0.f; });
  n.plan->steps[1].workspace_offset = n.plan->buffers[whole].offset;
  EXPECT_THAT(awaited_steps(*n.plan), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0)));
}

TEST(AwaitedSteps, OfEffectsAreInTurn) {
  Numbers n;
  const BufferId x = n.buffer(Where::kInput);
  n.step("0", last_cores(), {x}, n.buffer(Where::kArena));
  n.step("1", {}, {x}, n.buffer(Where::kArena));
  n.step("2", {}, {x}, n.buffer(Where::kOutput));
  n.plan->steps[0].has_effects = n.plan->steps[2].has_effects = true;
  EXPECT_THAT(awaited_steps(*n.plan), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0)));
}

}  // namespace
}  // namespace collage
