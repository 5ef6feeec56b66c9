// The shortest time of a kernel on a machine of made-up figures, and that of real kernels on this
// one.
#include "report/roofline.h"

#include <gtest/gtest.h>

#include <limits>

namespace collage {
namespace {

constexpr double kMemory = std::numeric_limits<double>::infinity();

MachinePeaks some_machine() {
  MachinePeaks peaks{400e9, {{"bfloat16", 6400e9}}, {}};
  peaks.levels = {
      {"L1", 64e3, 800e9}, {"L2", 1e6, 400e9}, {"L3", 32e6, 100e9}, {"memory", kMemory, 20e9}};
  return peaks;
}

LeastWork moving(double activations, double constants = 0) {
  return {"float32", 0, activations, constants};
}

TEST(Roofline, ComputingIsHeldAgainstItsUnit) {
  const MachinePeaks peaks = some_machine();
  Roof roof = roof_of(peaks, {"float32", 2e8, 1e3, 0}, 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 0.5e-3);
  EXPECT_EQ(roof.bound, "float32");
  roof = roof_of(peaks, {"bfloat16", 6e8, 1e3, 0}, 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 6e8 / 6400e9);
  EXPECT_EQ(roof.bound, "bfloat16");
  EXPECT_DOUBLE_EQ(roof_of(peaks, {"any", 6e8, 0, 0}, 0).seconds, 6e8 / 6400e9)
      << "nobody knows the unit: the fastest";
  EXPECT_DOUBLE_EQ(roof_of(peaks, {"int16", 6e8, 0, 0}, 0).seconds, 0) << "no figure, no roof";
}

TEST(Roofline, ActivationsComeFromTheCachesThatHoldThem) {
  const MachinePeaks peaks = some_machine();
  Roof roof = roof_of(peaks, moving(32e3), 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 32e3 / 800e9);
  EXPECT_EQ(roof.bound, "L1");
  roof = roof_of(peaks, moving(964e3), 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 900e3 / 400e9) << "but for what the first level holds";
  EXPECT_EQ(roof.bound, "L2");
  roof = roof_of(peaks, moving(6.064e6), 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 5e6 / 100e9);
  EXPECT_EQ(roof.bound, "L3");
  roof = roof_of(peaks, moving(133.064e6), 0);
  EXPECT_DOUBLE_EQ(roof.seconds, 100e6 / 20e9);
  EXPECT_EQ(roof.bound, "memory");
}

// Where a slow level feeds a fast one little faster than that delivers, all passes the fast one.
TEST(Roofline, WhatComesFromFurtherPassesTheNearerLevels) {
  MachinePeaks peaks = some_machine();
  peaks.levels = {{"L1", 64e3, 100e9}, {"memory", kMemory, 80e9}};
  const Roof roof = roof_of(peaks, moving(96e3), 0);
  EXPECT_EQ(roof.bound, "L1");
  EXPECT_DOUBLE_EQ(roof.seconds, 96e3 / 100e9);
}

TEST(Roofline, ConstantsComeFromWhatTheModelLeavesOfTheCaches) {
  const MachinePeaks peaks = some_machine();
  Roof roof = roof_of(peaks, moving(0, 50e3), 50e3);
  EXPECT_EQ(roof.bound, "L1") << "the whole model fits there";
  roof = roof_of(peaks, moving(0, 4e6), 16e6);
  EXPECT_EQ(roof.bound, "L3");
  EXPECT_NEAR(roof.seconds, 4e6 * (1 - 1.064 / 16) / 100e9, 1e-12);
  roof = roof_of(peaks, moving(0, 4e6), 100e6);
  EXPECT_EQ(roof.bound, "memory");
  EXPECT_NEAR(roof.seconds, 4e6 * (1 - 33.064 / 100) / 20e9, 1e-12);
}

// A product by 4 MB of weights that a shared cache holds takes a fifth of what memory would: the
// roof of memory alone would say 250%.
TEST(Roofline, WhatACacheDeliversIsNoShareOfMemorys) {
  const MachinePeaks peaks = some_machine();
  const double seconds = 4e6 / 50e9;  // half of the shared cache's bandwidth
  EXPECT_GT(4e6 / peaks.levels.back().bytes_per_second / seconds, 2.4);
  EXPECT_LE(roof_of(peaks, moving(1e3, 4e6), 16e6).seconds / seconds, 0.51);
}

TEST(Roofline, WithoutLevelsOnlyArithmeticIsHeldAgainst) {
  MachinePeaks peaks = some_machine();
  peaks.levels.clear();
  EXPECT_DOUBLE_EQ(roof_of(peaks, {"float32", 4e8, 1e9, 1e9}, 1e9).seconds, 1e-3);
}

TEST(Roofline, MemoryIsAsFastAsItWasSeenToBe) {
  MachinePeaks peaks = some_machine();
  const double memory = peaks.levels.back().bytes_per_second;
  const double first = peaks.levels.front().bytes_per_second;
  raise_memory_peak(peaks, 0);  // nobody looked
  EXPECT_EQ(peaks.levels.back().bytes_per_second, memory);
  raise_memory_peak(peaks, 1.5 * memory);
  EXPECT_EQ(peaks.levels.back().bytes_per_second, 1.5 * memory);
  EXPECT_EQ(peaks.levels.front().bytes_per_second, first);
  raise_memory_peak(peaks, 2 * first);
  for (const MemoryLevel& level : peaks.levels) EXPECT_EQ(level.bytes_per_second, 2 * first);
}

TEST(Roofline, PeaksAreThoseOfAMachine) {
  ThreadTeam team(1);
  const MachinePeaks peaks = measure_peaks(team);
  EXPECT_GT(peaks.flops_per_second, 1e8);
  ASSERT_GE(peaks.levels.size(), 3U);
  EXPECT_EQ(peaks.levels.front().name, "L1");
  EXPECT_EQ(peaks.levels.back().name, "memory");
  for (size_t i = 0; i < peaks.levels.size(); ++i) {
    EXPECT_GT(peaks.levels[i].bytes_per_second, 1e7) << peaks.levels[i].name;
    if (i == 0) continue;
    EXPECT_LT(peaks.levels[i - 1].bytes, peaks.levels[i].bytes);
    EXPECT_GE(peaks.levels[i - 1].bytes_per_second, peaks.levels[i].bytes_per_second);
  }
}

}  // namespace
}  // namespace collage
