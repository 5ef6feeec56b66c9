#include "measure/probe.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

#include "base/processor.h"
#include "base/statistics.h"
#include "measure/peak_loops.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

constexpr int kRepeats = 5;

// Some 150 µs of dependent multiply-adds: depends on the clock rate alone.
float compute() {
  float x = 1.0f;
  for (int i = 0; i < 60'000; ++i) {
    x = x * 0.999f + 0.001f;
    asm volatile("" : "+x"(x));
  }
  return x;
}

// 8 MB, more than private caches hold.
int64_t stream(const std::vector<int64_t>& buffer) {
  int64_t sum = 0;
  for (size_t i = 0; i < buffer.size(); i += 8) sum += buffer[i];
  return sum;
}

// Makes the compiler believe that somebody wants the value.
void keep(int64_t value) { asm volatile("" : : "r"(value)); }

template <typename Body>
double median_seconds(Body&& body) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Stopwatch watch;
    body();
    seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

}  // namespace

ProbeSeconds run_probes() {
  static const std::vector<int64_t> buffer((8 << 20) / sizeof(int64_t), 1);
  ProbeSeconds seconds;
  seconds.compute = median_seconds([] { keep(static_cast<int64_t>(compute())); });
  seconds.bandwidth = median_seconds([] { keep(stream(buffer)); });
  return seconds;
}

double seconds_per_memory_byte(ThreadTeam& team) {
  // Four times what a shared cache keeps: little of it is there when it is read again.
  constexpr size_t kLeastBytes = size_t{192} << 20, kMostBytes = size_t{1} << 30, kStep = 512;
  constexpr int kPasses = 2;
  static std::vector<std::shared_ptr<void>> buffers;  // of the worker: it measures on one thread
  static size_t bytes = 0;                            // of each
  const auto threads = static_cast<size_t>(team.size());
  if (buffers.size() != threads) {
    buffers.clear();
    bytes = std::min(std::max(kLeastBytes, 4 * shared_cache_bytes()), kMostBytes) / threads /
            kStep * kStep;
    for (size_t t = 0; t < threads; ++t) {
      Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(bytes);
      if (!memory) return 0;
      std::memset(memory->get(), 1, bytes);
      buffers.push_back(std::move(memory).value());
    }
  }
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < kPasses; ++pass) {
    const Stopwatch watch;
    team.run([&](int t) { keep(read_buffer(buffers[static_cast<size_t>(t)].get(), bytes)); });
    best = std::min(best, watch.seconds());
  }
  return best / static_cast<double>(bytes * threads);
}

CpuSeconds read_cpu_seconds() {
  CpuSeconds seconds;
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ::sched_getaffinity(0, sizeof ours, &ours);
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
    if (line.size() < 4 || line[3] < '0' || line[3] > '9') continue;  // the sum of all
    std::istringstream fields(line.substr(3));
    int cpu = 0;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    if (!(fields >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal))
      continue;
    if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &ours))
      seconds.all += user + nice + system + irq + soft + steal;
  }
  seconds.all /= static_cast<double>(::sysconf(_SC_CLK_TCK));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  for (const timeval& t : {usage.ru_utime, usage.ru_stime})
    seconds.own += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  return seconds;
}

void ProbeHistory::add(const ProbeSeconds& probe) {
  constexpr size_t kLength = 64;
  latest_.push_back(probe);
  if (latest_.size() > kLength) latest_.pop_front();
}

ProbeSeconds ProbeHistory::usual() const {
  if (latest_.empty()) return {};
  std::vector<double> compute, bandwidth;
  for (const ProbeSeconds& probe : latest_) {
    compute.push_back(probe.compute);
    bandwidth.push_back(probe.bandwidth);
  }
  return {percentile(compute, 0.25), percentile(bandwidth, 0.25)};
}

bool ProbeHistory::is_disturbed(const Conditions& conditions) const {
  ProbeSeconds normal = usual();
  return conditions.compute > normal.compute * kSlowCompute ||
         conditions.bandwidth > normal.bandwidth * kSlowBandwidth ||
         conditions.other_load > kOtherLoad;
}

Watch::Watch(int threads, ProbeHistory& history)
    : threads_(threads), history_(history), before_(run_probes()), cpu_(read_cpu_seconds()) {
  history_.add(before_);
}

Conditions Watch::stop() {
  const double elapsed = stopwatch_.seconds();
  CpuSeconds cpu = read_cpu_seconds();
  ProbeSeconds after = run_probes();
  history_.add(after);
  Conditions conditions;
  conditions.compute = std::max(before_.compute, after.compute);
  conditions.bandwidth = std::max(before_.bandwidth, after.bandwidth);
  // The system counts in steps of 10 ms: too short a time tells nothing.
  double others = (cpu.all - cpu_.all) - (cpu.own - cpu_.own);
  if (elapsed > 0.1) conditions.other_load = std::max(0.0, (others - 0.02) / (elapsed * threads_));
  conditions.disturbed = history_.is_disturbed(conditions);
  return conditions;
}

}  // namespace collage
