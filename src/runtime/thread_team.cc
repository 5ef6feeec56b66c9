#include "runtime/thread_team.h"

#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace collage {

namespace {

// Whole cores granted by the cgroup v2 quota ("max 100000" or "200000 100000"), or `fallback`.
int cgroup_cores(int fallback) {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return fallback;
  char* end = nullptr;
  double microseconds = std::strtod(quota.c_str(), &end);
  if (end == quota.c_str() || microseconds <= 0) return fallback;
  return std::max(1, static_cast<int>(microseconds / period + 0.5));
}

void futex_wait(std::atomic<int>& word, int expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

// What the calling thread may run on beside the core that it runs on now.
std::vector<int> other_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  const int own = sched_getcpu();
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (core != own && CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// Waits until `word` is no longer `value`: at first awake but giving the core to whoever asks for
// it, since waking from a futex would cost the next parallel region some 40 µs; after a while
// asleep.
void wait_while(std::atomic<int>& word, int value) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kAwake = std::chrono::microseconds(2000);
  const auto begin = Clock::now();
  while (word.load(std::memory_order_acquire) == value) {
    if (Clock::now() - begin < kAwake) {
      sched_yield();
    } else {
      futex_wait(word, value);
    }
  }
}

void futex_wake_all(std::atomic<int>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

}  // namespace

int ThreadTeam::available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(cores, cgroup_cores(cores)));
}

TeamScope::TeamScope(int threads)
    : threads_before_(omp_get_max_threads()), dynamic_before_(omp_get_dynamic()) {
  omp_set_dynamic(0);
  omp_set_num_threads(std::max(1, threads));
}

TeamScope::~TeamScope() {
  omp_set_num_threads(threads_before_);
  omp_set_dynamic(dynamic_before_);
}

void run_with_team(int threads, const std::function<void()>& body) {
  const auto work = [&] {
    const TeamScope scope(threads);
    body();
  };
  if (!omp_in_parallel()) return work();
  std::exception_ptr failure;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

ThreadTeam::ThreadTeam(int threads)
    : size_(std::min(threads > 0 ? threads : available_cores(), omp_get_thread_limit())) {}

void ThreadTeam::run(const std::function<void(int)>& body) {
  const TeamScope scope(size_);
#pragma omp parallel num_threads(size_)
  body(omp_get_thread_num());
}

void ThreadTeam::park(const std::function<void()>& body) {
  if (size_ == 1) return body();
  const TeamScope scope(size_);
  std::atomic<int> parked{1};
  std::exception_ptr failure;
#pragma omp parallel num_threads(size_)
  {
    if (omp_get_thread_num() == 0) {
      try {
        body();
      } catch (...) {
        failure = std::current_exception();
      }
      parked.store(0, std::memory_order_release);
      futex_wake_all(parked);
    } else {
      wait_while(parked, 1);
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void run_on_new_threads(int threads, const std::function<void(int)>& body) {
  struct Task {
    const std::function<void(int)>* body;
    int thread;
  };
  const std::vector<int> cores = other_cores();
  std::vector<Task> tasks;
  for (int i = 1; i < threads; ++i) tasks.push_back({&body, i});
  std::vector<pthread_t> others;
  for (Task& task : tasks) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (!cores.empty()) {
      cpu_set_t core;
      CPU_ZERO(&core);
      CPU_SET(cores[others.size() % cores.size()], &core);
      pthread_attr_setaffinity_np(&attributes, sizeof core, &core);
    }
    const auto work = [](void* at) -> void* {
      const Task& own = *static_cast<Task*>(at);
      (*own.body)(own.thread);
      return nullptr;
    };
    const int failure = pthread_create(&others.emplace_back(), &attributes, work, &task);
    pthread_attr_destroy(&attributes);
    if (failure == 0) continue;
    others.pop_back();
    body(task.thread);  // no thread to be had
  }
  body(0);
  for (const pthread_t other : others) pthread_join(other, nullptr);
}

}  // namespace collage
