// Limits of control groups, as containers, services, jobs and pods set them, in trees made by hand.
#include "base/machine_limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <fstream>

#include "base/scratch_folder.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class GroupLimitsTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& content) {
    const fs::path path = folder_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  GroupLimits limits() { return group_limits(folder_.path()); }

  ScratchFolder folder_ =
      ScratchFolder::create(fs::temp_directory_path(), "collage-limits-").value();
};

constexpr const char* kUnified = "25 20 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

TEST_F(GroupLimitsTest, NothingIsLimitedWhereNobodySays) {
  EXPECT_FALSE(limits().cores || limits().bytes) << "no proc";
  write("proc/self/cgroup", "0::/\n");
  write("proc/self/mountinfo", kUnified);
  EXPECT_FALSE(limits().cores || limits().bytes) << "no files";
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(limits().cores || limits().bytes);
}

// systemd's CPUQuota= and MemoryMax= of a service, under a slice with limits of its own.
TEST_F(GroupLimitsTest, OfVersion2TheLeastFromTheOwnGroupUp) {
  write("proc/self/cgroup", "0::/jobs.slice/work.service\n");
  write("proc/self/mountinfo", kUnified);
  write("sys/fs/cgroup/jobs.slice/work.service/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/jobs.slice/work.service/memory.max", "3000000000\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 2.5);
  EXPECT_EQ(limits().bytes.value(), 3'000'000'000u);
  write("sys/fs/cgroup/jobs.slice/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/jobs.slice/memory.max", "2000000000\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 1.5) << "the slice's";
  EXPECT_EQ(limits().bytes.value(), 2'000'000'000u);
  write("sys/fs/cgroup/other.slice/cpu.max", "1000 100000\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 1.5) << "another's limit is none of ours";
}

// Slurm and Kubernetes on version 1: a hierarchy for each controller, the limit some levels up.
TEST_F(GroupLimitsTest, OfVersion1) {
  write("proc/self/cgroup",
        "9:memory:/kubepods/pod7/c1\n4:cpu,cpuacct:/kubepods/pod7/c1\n1:name=systemd:/x\n");
  write("proc/self/mountinfo",
        "30 20 0:25 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "31 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 20 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod7/c1/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod7/c1/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/kubepods/pod7/c1/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(limits().cores || limits().bytes);
  write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod7/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod7/cpu.cfs_period_us", "50000\n");
  write("sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes", "1073741824\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 1);
  EXPECT_EQ(limits().bytes.value(), uint64_t{1} << 30);
}

// A container on version 1 whose mounts show its own group as the root.
TEST_F(GroupLimitsTest, OfAMountThatShowsOneGroup) {
  write("proc/self/cgroup", "3:memory:/docker/abc/inner\n2:cpu:/docker/abc/inner\n");
  write("proc/self/mountinfo",
        "30 20 0:25 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "31 20 0:26 /docker/abc /sys/fs/cgroup/memory\\040here rw - cgroup cgroup rw,memory\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory here/memory.limit_in_bytes", "4096000\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 2);
  EXPECT_EQ(limits().bytes.value(), 4'096'000u);
}

// A namespace of groups: the process is at "/", or at a path outside of what is mounted.
TEST_F(GroupLimitsTest, OfANamespace) {
  write("proc/self/mountinfo", kUnified);
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  for (const char* group : {"0::/\n", "0::/../outside\n"}) {
    write("proc/self/cgroup", group);
    EXPECT_DOUBLE_EQ(limits().cores.value(), 0.5) << group;
  }
}

// Controllers of version 1 beside a version 2 that has none.
TEST_F(GroupLimitsTest, OfBothVersions) {
  write("proc/self/cgroup", "5:cpu:/a\n0::/b\n");
  write("proc/self/mountinfo",
        "30 20 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "31 20 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/unified/b/memory.max", "123456789\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 4);
  EXPECT_EQ(limits().bytes.value(), 123'456'789u);
}

TEST_F(GroupLimitsTest, WhatIsLeftIsWhatNobodyTook) {
  EXPECT_GT(memory_left(folder_.path()), uint64_t{1} << 50) << "nobody says";
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 4000 kB\nSwapFree: 1000 kB\n");
  EXPECT_EQ(memory_left(folder_.path()), 5000u * 1024);
  write("proc/self/cgroup", "0::/a/b\n");
  write("proc/self/mountinfo", kUnified);
  write("sys/fs/cgroup/a/memory.max", "2000000\n");
  write("sys/fs/cgroup/a/memory.current", "1500000\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 200000\nactive_file 100000\n");
  EXPECT_EQ(memory_left(folder_.path()), 800'000u);
  write("sys/fs/cgroup/a/b/memory.max", "100000\n");
  write("sys/fs/cgroup/a/b/memory.current", "150000\n");
  EXPECT_EQ(memory_left(folder_.path()), 0u);
}

TEST_F(GroupLimitsTest, NonsenseIsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/\n::\n");
  write("proc/self/mountinfo", std::string("- cgroup2\n1 2 - cgroup\n\n") + kUnified);
  for (const char* nonsense : {"", "soon", "-5 100000", "0 0", "100000 0", "1 2 3"}) {
    write("sys/fs/cgroup/cpu.max", nonsense);
    EXPECT_FALSE(limits().cores.has_value()) << nonsense;
  }
  write("sys/fs/cgroup/memory.max", "-1\n");
  EXPECT_FALSE(limits().bytes.has_value());
}

TEST(MachineLimits, AreThoseOfTheAffinityMaskAtMost) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_GT(available_memory(), uint64_t{1} << 26);
}

}  // namespace
}  // namespace collage
