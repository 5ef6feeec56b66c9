// Every way to misbehave that a trial must see, planted on purpose.
#include "measure/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <thread>

#include "planted_kernel.h"

namespace collage {
namespace {

using testing::planted;
using testing::subject_of;
using testing::unary;

constexpr int kCount = 35;  // floats: 140 bytes, so that 52 more follow up to a multiple of 64

// The right result, then what `spoil` does.
std::unique_ptr<Kernel> tanh_and(testing::PlantedKernel::Body spoil, size_t workspace = 0) {
  return planted(
      [spoil = std::move(spoil)](const float* in, float* out, char* workspace) -> Status {
        for (int i = 0; i < kCount; ++i) out[i] = std::tanh(in[i]);
        return spoil(in, out, workspace);
      },
      workspace);
}

Result<Trial> attempt(std::unique_ptr<Kernel> kernel) {
  Function function = unary("tanh", {5, 7});
  Subject subject = subject_of(function);
  ThreadTeam team(1);
  return try_kernel(std::move(kernel), Variant::plain("planted", function), subject, team);
}

std::string verdict(std::unique_ptr<Kernel> kernel) {
  Result<Trial> trial = attempt(std::move(kernel));
  return trial ? "good" : trial.status().to_string();
}

// A pointer that the optimizer knows nothing of.
template <typename T>
T* opaque(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

TEST(Trial, AcceptsARightKernel) {
  Result<Trial> trial = attempt(tanh_and([](auto...) { return Status(); }));
  ASSERT_TRUE(trial.ok()) << trial.status().to_string();
  EXPECT_TRUE(trial->repeatable);
}

TEST(Trial, AcceptsTheLastBitButNoMore) {
  auto scaled = [](float factor) {
    return tanh_and([factor](const float*, float* out, char*) {
      for (int i = 0; i < kCount; ++i) out[i] *= factor;
      return Status();
    });
  };
  auto next = tanh_and([](const float*, float* out, char*) {
    for (int i = 0; i < kCount; ++i) out[i] = std::nextafter(out[i], 2.0f);
    return Status();
  });
  EXPECT_EQ(verdict(std::move(next)), "good");
  EXPECT_THAT(verdict(scaled(1.001f)), ::testing::HasSubstr("wrong result: output 0 element"));
  EXPECT_THAT(verdict(scaled(1.1f)), ::testing::HasSubstr("wrong result: output 0 element"));
}

// Such as one that is tried and not timed.
TEST(Trial, OfSubjectsThatAreJudgedQuicklyAllowsALittleMore) {
  auto verdict_on = [](float factor) {
    const Function function = unary("tanh", {5, 7});
    Subject subject = subject_of(function);
    subject.judge_quickly();
    ThreadTeam team(1);
    auto kernel = tanh_and([factor](const float*, float* out, char*) {
      out[kCount - 1] *= factor;
      return Status();
    });
    return try_kernel(std::move(kernel), Variant::plain("planted", function), subject, team)
        .status()
        .to_string();
  };
  EXPECT_EQ(verdict_on(1.000005f), Status().to_string());
  EXPECT_THAT(verdict_on(1.001f), ::testing::HasSubstr("wrong result: output 0 element"));
}

// What is compared with nothing runs again to see whether it is repeatable, unless that takes long.
TEST(Trial, RunsWhatIsNotComparedAndTakesLongOnce) {
  for (const auto& [pause, times] : {std::pair(0, 2), std::pair(600, 1)}) {
    const Function function = unary("tanh", {5, 7});
    Subject subject = Subject::unchecked(function, {}).value();
    ThreadTeam team(1);
    int runs = 0;
    auto kernel = tanh_and([&runs, pause = pause](const float*, float*, char*) {
      ++runs;
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      return Status();
    });
    const Result<Trial> trial =
        try_kernel(std::move(kernel), Variant::plain("planted", function), subject, team);
    ASSERT_TRUE(trial.ok()) << trial.status().to_string();
    EXPECT_EQ(runs, times);
    EXPECT_EQ(trial->repeatable, times == 2);
  }
}

TEST(Trial, SeesOneWrongElement) {
  for (float wrong : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY, 0.5f}) {
    auto kernel = tanh_and([wrong](const float*, float* out, char*) {
      out[kCount - 1] = wrong;
      return Status();
    });
    EXPECT_THAT(verdict(std::move(kernel)), ::testing::HasSubstr("wrong result: output 0 element"))
        << wrong;
  }
}

TEST(Trial, SeesWhatWasNotWritten) {
  auto kernel = planted([](const float* in, float* out, char*) {
    for (int i = 0; i < kCount - 1; ++i) out[i] = std::tanh(in[i]);
    return Status();
  });
  EXPECT_THAT(verdict(std::move(kernel)), ::testing::HasSubstr("wrong result"));
}

TEST(Trial, SeesAWriteJustBehindItsOutput) {
  auto byte = tanh_and([](const float*, float* out, char*) {
    *opaque(reinterpret_cast<char*>(out + kCount)) = 0;
    return Status();
  });
  EXPECT_EQ(verdict(std::move(byte)), "wrote behind output 0");
}

TEST(Trial, SeesAWriteJustBeforeItsOutput) {
  auto kernel = tanh_and([](const float*, float* out, char*) {
    opaque(out)[-1] = 0;
    return Status();
  });
  EXPECT_EQ(verdict(std::move(kernel)), "wrote before output 0");
}

TEST(Trial, SeesAWriteBesideItsWorkspace) {
  auto kernel = tanh_and(
      [](const float*, float*, char* workspace) {
        opaque(workspace)[100] = 0;
        return Status();
      },
      100);
  EXPECT_EQ(verdict(std::move(kernel)), "wrote behind the workspace");
}

TEST(Trial, SeesARelianceOnTheWorkspacesContents) {
  auto kernel = tanh_and(
      [](const float*, float* out, char* workspace) {
        out[0] += *reinterpret_cast<float*>(workspace);
        return Status();
      },
      64);
  EXPECT_THAT(verdict(std::move(kernel)), ::testing::HasSubstr("wrong result"));
}

TEST(Trial, SeesStateKeptFromAnEarlierRun) {
  auto runs = std::make_shared<int>(0);
  auto kernel = tanh_and([runs](const float*, float* out, char*) {
    out[3] += static_cast<float>((*runs)++);
    return Status();
  });
  std::string said = verdict(std::move(kernel));
  EXPECT_THAT(said, ::testing::HasSubstr("on its second run: wrong result"));
}

TEST(Trial, MarksResultsThatDifferInTheirLastBits) {
  auto runs = std::make_shared<int>(0);
  auto kernel = tanh_and([runs](const float*, float* out, char*) {
    if ((*runs)++ % 2 == 1) out[3] = std::nextafter(out[3], 2.0f);
    return Status();
  });
  Result<Trial> trial = attempt(std::move(kernel));
  ASSERT_TRUE(trial.ok()) << trial.status().to_string();
  EXPECT_FALSE(trial->repeatable);
}

TEST(Trial, SeesAKernelThatGoesWrongLater) {
  auto runs = std::make_shared<int>(0);
  auto kernel = tanh_and([runs](const float*, float* out, char*) {
    if (++*runs > 5) out[3] = 7;  // three runs try it
    return Status();
  });
  Function function = unary("tanh", {5, 7});
  Subject subject = subject_of(function);
  ThreadTeam team(1);
  Variant variant = Variant::plain("planted", function);
  Result<Trial> trial = try_kernel(std::move(kernel), variant, subject, team);
  ASSERT_TRUE(trial.ok()) << trial.status().to_string();
  void* in = trial->inputs[0]->data();
  void* out = trial->outputs[0].data();
  for (int run = 0; run < 10; ++run) {
    EXPECT_EQ(check_after_timing(*trial, variant, subject).ok(), run < 3) << run;
    ASSERT_TRUE(trial->kernel->run({&in, &out, trial->workspace.data()}).ok());
  }
  EXPECT_THAT(check_after_timing(*trial, variant, subject).to_string(),
              ::testing::HasSubstr("after many runs: wrong result"));
}

// Some inputs of the third run are 1e5, infinite, NaN, denormal, or the largest there are.
TEST(Trial, SeesWhatIsWrongWhereNumbersEnd) {
  const auto wrong_where = [](const std::function<bool(float)>& there, float result) {
    return verdict(tanh_and([=](const float* in, float* out, char*) {
      for (int i = 0; i < kCount; ++i)
        if (there(in[i])) out[i] = result;
      return Status();
    }));
  };
  const auto is_far = [](float x) { return std::abs(x) > 1e4f && std::isfinite(x); };
  EXPECT_THAT(wrong_where(is_far, 0), ::testing::HasSubstr("at the ends of numbers: wrong result"));
  EXPECT_THAT(wrong_where([](float x) { return std::isinf(x); }, 0),
              ::testing::HasSubstr("at the ends of numbers: wrong result"));
  EXPECT_EQ(wrong_where([](float x) { return x != 0 && std::abs(x) < 1e-38f; }, 0), "good")
      << "flushed to zero";
}

TEST(Trial, MarksWhatNanBecomes) {
  const auto with = [](const std::function<bool(float)>& there, float result) {
    return attempt(tanh_and([=](const float* in, float* out, char*) {
             for (int i = 0; i < kCount; ++i)
               if (there(in[i])) out[i] = result;
             return Status();
           }))
        .value();
  };
  const Trial loses = with([](float x) { return std::isnan(x); }, 1);
  EXPECT_TRUE(loses.loses_nan);
  EXPECT_FALSE(loses.spreads_nan);
  const Trial spreads = with([](float x) { return std::isinf(x); }, NAN);
  EXPECT_FALSE(spreads.loses_nan);
  EXPECT_TRUE(spreads.spreads_nan);
  const Trial right = with([](float) { return false; }, 0);
  EXPECT_FALSE(right.loses_nan || right.spreads_nan);
}

TEST(Trial, PassesOnErrorsAndExceptions) {
  EXPECT_EQ(verdict(planted([](auto...) { return internal_error("no luck today"); })),
            "no luck today");
  EXPECT_EQ(
      verdict(planted([](auto...) -> Status { throw std::runtime_error("out of patience"); })),
      "threw an exception: out of patience");
  EXPECT_EQ(verdict(planted([](auto...) -> Status { throw 7; })), "threw an exception");
}

TEST(Trial, RefusesAWorkspaceThatNoMachineHas) {
  EXPECT_THAT(verdict(planted([](auto...) { return Status(); }, size_t{1} << 60)),
              ::testing::HasSubstr("the workspace"));
}

TEST(Trial, SeesPaddingThatIsNotZero) {
  Function function = unary("nn.relu", {1, 3, 2, 2});
  Subject subject = subject_of(function);
  ThreadTeam team(1);
  Variant variant = Variant::plain("planted", function);
  variant.inputs[0].layout = variant.outputs[0].layout = Layout::channels_blocked(4, 8);
  for (bool clean : {true, false}) {
    auto kernel = planted([clean](const float* in, float* out, char*) {
      for (int i = 0; i < 32; ++i) out[i] = std::max(in[i], 0.0f);
      if (!clean) out[7] = 1e-20f;
      return Status();
    });
    Result<Trial> trial = try_kernel(std::move(kernel), variant, subject, team);
    EXPECT_EQ(trial.ok(), clean);
    if (!trial) {
      EXPECT_THAT(trial.status().message(), ::testing::HasSubstr("padding of output 0"));
    }
  }
}

TEST(Trial, ChecksAVariantsEncodings) {
  Function function = unary("tanh", {5, 7});
  Subject subject = subject_of(function);
  Variant variant = Variant::plain("planted", function);
  EXPECT_TRUE(subject.check_fit(variant).ok());
  Variant image = variant;
  image.outputs[0].layout = Layout::channels_last(4);
  EXPECT_FALSE(subject.check_fit(image).ok());
  variant.outputs.push_back(variant.outputs[0]);
  EXPECT_FALSE(subject.check_fit(variant).ok());
}

TEST(Trial, TriesOtherDataWhereTheReferenceSaysLittle) {
  // In [-1, 1] nothing is above 1.5: the first data would accept a kernel that does nothing.
  register_all_ops();
  Function function = unary("nn.thresholded_relu", {64}, {{"alpha", 1.5}});
  Subject subject = subject_of(function);
  ThreadTeam team(1);
  Result<Trial> trial = try_kernel(planted([](const float*, float* out, char*) {
                                     std::fill(out, out + 64, 0.0f);
                                     return Status();
                                   }),
                                   Variant::plain("planted", function), subject, team);
  EXPECT_FALSE(trial.ok());
}

// What kills the process: the worker's parent blames it on the kernel (tests/compiler).
class TrialDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void expect_fault(testing::PlantedKernel::Body spoil, const std::string& message) {
    EXPECT_EXIT(
        {
          report_faults_to(2);
          (void)verdict(tanh_and(spoil, 64));
        },
        ::testing::KilledBySignal(SIGSEGV), message);
  }
};

TEST_F(TrialDeathTest, WriteIntoItsInput) {
  expect_fault(
      [](const float* in, float*, char*) {
        *opaque(const_cast<float*>(in)) = 1;
        return Status();
      },
      "wrote into input 0");
}

TEST_F(TrialDeathTest, WriteAndReadFarBehind) {
  expect_fault(
      [](const float*, float* out, char*) {
        opaque(out)[48] = 1;
        return Status();
      },
      "accessed memory behind output 0");
  expect_fault(
      [](const float* in, float* out, char*) {
        out[0] = opaque(in)[48];
        return Status();
      },
      "accessed memory behind input 0");
  expect_fault(
      [](const float*, float*, char* workspace) {
        opaque(workspace)[64] = 1;
        return Status();
      },
      "accessed memory behind the workspace");
}

TEST_F(TrialDeathTest, ReadBefore) {
  expect_fault(
      [](const float* in, float*, char*) {
        volatile float ignored = opaque(in)[-1];
        (void)ignored;
        return Status();
      },
      "accessed memory before input 0");
}

}  // namespace
}  // namespace collage
