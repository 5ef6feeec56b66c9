// What timing decides by, on given numbers: nothing here looks at a clock.
#include "measure/timing.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "measure/effort.h"
#include "measure/noise_gate.h"
#include "measure/probe.h"
#include "measure/sampler.h"
#include "planted_kernel.h"

namespace collage {
namespace {

TEST(MedianInterval, HoldsTheMedianOfTheDistributionMostly) {
  std::mt19937 random(1);
  std::exponential_distribution<double> distribution(std::log(2.0));  // its median is 1
  for (int count : {8, 20, 60}) {
    int held = 0;
    constexpr int kTrials = 1000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> sample;
      for (int i = 0; i < count; ++i) sample.push_back(distribution(random));
      Interval interval = median_interval(sample);
      held += interval.low <= 1 && 1 <= interval.high;
    }
    EXPECT_GE(held, kTrials * 92 / 100) << count;
    EXPECT_LE(held, kTrials * 995 / 1000) << count << ": it says too little";
  }
}

TEST(MedianInterval, OfFewSamplesIsTheirRange) {
  EXPECT_EQ(median_interval({5}).low, 5);
  EXPECT_EQ(median_interval({5}).high, 5);
  Interval interval = median_interval({3, 1, 2});
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
}

TEST(TimeKernels, GivesEachKernelItsOwnAnswer) {
  auto runs = std::make_shared<int>(0);
  std::unique_ptr<Kernel> good = testing::planted([](auto...) { return Status(); });
  std::unique_ptr<Kernel> bad = testing::planted(
      [runs](auto...) { return ++*runs > 3 ? internal_error("tired") : Status(); });
  float in = 0, out = 0;
  std::vector<TimedKernel> kernels;
  for (Kernel* kernel : {bad.get(), good.get()})
    kernels.push_back({kernel, {{&in, sizeof in}}, {{&out, sizeof out}}, {}});
  std::atomic<int32_t> running{-1};
  std::atomic<uint32_t> beats{0};
  TimingOptions options = TimingOptions::of(Effort::kFast);
  options.cache = CacheState::kWarm;
  options.running = &running;
  options.beats = &beats;
  ThreadTeam team(1);
  NoiseGate gate;
  std::vector<Result<Block>> results = time_kernels(kernels, team, options, gate).value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].status().message(), "tired");
  ASSERT_TRUE(results[1].ok());
  EXPECT_GE(results[1]->samples, options.min_rounds);
  EXPECT_LE(results[1]->p10, results[1]->median);
  EXPECT_LE(results[1]->median, results[1]->p90);
  EXPECT_EQ(running, 1) << "the last one that ran";
  EXPECT_GE(beats, 7u);
}

TEST(TimeKernels, StreamingKernelsTakeTurns) {
  std::vector<int> runs;
  float in = 0, out = 0;
  std::vector<std::unique_ptr<Kernel>> planted;
  std::vector<TimedKernel> kernels;
  for (int k = 0; k < 3; ++k) {
    planted.push_back(testing::planted([&runs, k](auto...) {
      runs.push_back(k);
      return Status();
    }));
    kernels.push_back({planted.back().get(), {{&in, sizeof in}}, {{&out, sizeof out}}, {}});
  }
  TimingOptions options = TimingOptions::of(Effort::kFast);
  options.min_rounds = options.max_rounds = 4;
  options.max_seconds_per_kernel = 1e9;
  options.cache = CacheState::kStreaming;
  ThreadTeam team(1);
  NoiseGate gate;
  const std::vector<Result<Block>> results = time_kernels(kernels, team, options, gate).value();
  for (const Result<Block>& result : results) EXPECT_TRUE(result.ok());
  constexpr size_t kWarmUps = 9;
  ASSERT_EQ(runs.size(), kWarmUps + 3 * 4);
  for (size_t k = kWarmUps; k + 3 < runs.size(); ++k) EXPECT_EQ(runs[k], runs[k + 3]);
}

TEST(Sampler, RunsAKernelOnceASample) {
  int runs = 0;
  const std::unique_ptr<Kernel> kernel =
      testing::planted([&runs](const float* in, float* out, char*) {
        *out = *in + 1;
        return ++runs > 2 ? internal_error("tired") : Status();
      });
  float in = 41, out = 0;
  const TimedKernel timed{kernel.get(), {{&in, sizeof in}}, {{&out, sizeof out}}, {}};
  ThreadTeam team(1);
  NoiseGate gate;
  for (const CacheState state : {CacheState::kWarm, CacheState::kStreaming}) {
    Sampler sampler(team, state, gate);
    const Result<double> seconds = sampler.sample(timed, nullptr);
    ASSERT_TRUE(seconds.ok());
    EXPECT_GT(*seconds, 0);
    EXPECT_EQ(out, 42);
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Sampler(team, CacheState::kCold, gate).sample(timed, nullptr).status().message(),
            "tired");
}

TEST(Sampler, RunsTheKernelBeforeRightBefore) {
  std::string order;
  const auto named = [&order](char name) {
    return testing::planted([&order, name](auto...) {
      order += name;
      return name == 'c' ? internal_error("tired") : Status();
    });
  };
  const std::unique_ptr<Kernel> a = named('a'), b = named('b'), c = named('c');
  float in = 0, out = 0;
  const auto timed = [&](const std::unique_ptr<Kernel>& kernel) {
    return TimedKernel{kernel.get(), {{&in, sizeof in}}, {{&out, sizeof out}}, {}};
  };
  const TimedKernel first = timed(a), second = timed(b), failing = timed(c);
  ThreadTeam team(1);
  NoiseGate gate;
  Sampler sampler(team, CacheState::kCold, gate);
  EXPECT_TRUE(sampler.sample(second, &first).ok());
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(sampler.sample(second, &failing).status().message(), "tired");
  EXPECT_EQ(order, "abc");
  EXPECT_TRUE(sampler.run(first).ok());
  EXPECT_EQ(sampler.run(failing).message(), "tired");
  EXPECT_EQ(order, "abcac");
}

TEST(Effort, HasNamesThatParse) {
  for (Effort effort : {Effort::kFast, Effort::kDefault, Effort::kMax})
    EXPECT_EQ(parse_effort(effort_name(effort)).value(), effort);
  EXPECT_FALSE(parse_effort("huge").ok());
  EXPECT_LT(TimingOptions::of(Effort::kFast).min_rounds,
            TimingOptions::of(Effort::kDefault).min_rounds);
  EXPECT_LT(TimingOptions::of(Effort::kDefault).min_rounds,
            TimingOptions::of(Effort::kMax).min_rounds);
}

TEST(ProbeHistory, SeesWhatIsUnusual) {
  ProbeHistory history;
  for (int i = 0; i < 40; ++i) history.add({100e-6 + 1e-6 * (i % 10), 400e-6});
  history.add({20e-6, 20e-6});  // one far too short probe changes nothing
  auto disturbed = [&](double compute, double bandwidth, double load) {
    return history.is_disturbed({compute, bandwidth, load, false});
  };
  EXPECT_FALSE(disturbed(110e-6, 450e-6, 0.05));
  EXPECT_TRUE(disturbed(140e-6, 450e-6, 0.05));
  EXPECT_TRUE(disturbed(110e-6, 700e-6, 0.05));
  EXPECT_TRUE(disturbed(110e-6, 450e-6, 0.3));
}

TEST(ProbeHistory, LearnsANewUsual) {
  ProbeHistory history;
  for (int i = 0; i < 64; ++i) history.add({100e-6, 400e-6});
  for (int i = 0; i < 64; ++i) history.add({150e-6, 600e-6});
  EXPECT_FALSE(history.is_disturbed({150e-6, 600e-6, 0, false}));
}

TEST(OutlierGate, SeesWhatIsUnusual) {
  OutlierGate gate(1.2);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(gate.is_quiet(1.0 + 0.001 * (i % 10)));
  gate.is_quiet(0.1);  // one that is far too small changes nothing
  EXPECT_TRUE(gate.is_quiet(1.1));
  EXPECT_FALSE(gate.is_quiet(1.4));
  for (int i = 0; i < 300; ++i) gate.is_quiet(2.0);
  EXPECT_TRUE(gate.is_quiet(2.1)) << "usual by now";
}

TEST(NoiseGate, HasPatienceWhileItTimes) {
  NoiseGate gate;
  gate.allow(1);
  EXPECT_TRUE(gate.has_time_left());
  gate.waited(2);
  EXPECT_FALSE(gate.has_time_left());
  gate.timed(5);
  EXPECT_TRUE(gate.has_time_left());
}

TEST(NoiseGate, CountsWhatWasDisturbedWhenPatienceIsOut) {
  NoiseGate gate;
  gate.allow(1);
  EXPECT_TRUE(gate.counts(5, true));
  EXPECT_FALSE(gate.counts(4, false));
  EXPECT_FALSE(gate.counts(4, false)) << "4 of 5 + 1 seconds are waited";
  EXPECT_TRUE(gate.counts(4, false));
}

TEST(CoreProbe, SeesAllThreads) {
  constexpr int kThreads = 2;
  CoreProbe probe(kThreads);
  run_on_new_threads(kThreads, [&](int thread) { probe.look(thread); });
  EXPECT_GT(probe.state().contention, 0);
  EXPECT_LT(probe.state().core_to_core, 1e-3);  // 0 where they did not run at once
}

TEST(CoreProbe, GivesUpOnAThreadThatDoesNotCome) {
  CoreProbe probe(2);
  probe.look(0);
  EXPECT_EQ(probe.state().core_to_core, 0);
  probe.look(1);
  EXPECT_EQ(probe.state().core_to_core, 0);
}

TEST(CoreProbe, OfOneCoreKnowsNoHandover) {
  CoreProbe probe(1);
  probe.look(0);
  EXPECT_GT(probe.state().contention, 0);
  EXPECT_EQ(probe.state().core_to_core, 0);
}

TEST(Probe, ReadsTheMachine) {
  ProbeSeconds probe = run_probes();
  EXPECT_GT(probe.compute, 0);
  EXPECT_GT(probe.bandwidth, 0);
  CpuSeconds cpu = read_cpu_seconds();
  EXPECT_GT(cpu.all, 0);
  EXPECT_GT(cpu.own, 0);
}

TEST(Probes, MemoryIsReadAtAMachinesRate) {
  ThreadTeam team(1);
  NoiseGate gate;
  for (int look = 0; look < 2; ++look) {  // the second uses the first one's buffers
    const double seconds = seconds_per_memory_byte(team);
    EXPECT_GT(seconds, 1e-13);
    EXPECT_LT(seconds, 1e-7);
  }
}

}  // namespace
}  // namespace collage
