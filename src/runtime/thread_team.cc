#include "runtime/thread_team.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/machine_limits.h"
#include "runtime/team_pool.h"
#include "runtime/team_region.h"

namespace collage {

namespace {

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

}  // namespace

int ThreadTeam::available_cores() { return collage::available_cores(); }

TeamScope::TeamScope(int threads) : before_(here()), application_threads_(application_threads()) {
  Place& place = here();
  threads = std::max(1, threads);
  if (place.region != nullptr || (place.team != nullptr && place.team->size() < threads))
    place.team = nullptr;
  place.region = nullptr;
  place.threads = threads;
  set_application_threads(threads);
}

TeamScope::~TeamScope() {
  set_application_threads(application_threads_);
  here() = before_;
}

TeamHold::TeamHold(int threads) : scope_(threads) {
  Place& place = here();
  if (place.team != nullptr || place.threads == 1) return;
  taken_ = TeamPool::of_process().take(place.threads, !place.holds_team);
  if (taken_->size() < place.threads) {
    status_ = internal_error(
        "a team of {} threads cannot be had: the system gives {} (ulimit -u, or the container's "
        "limit of processes)",
        place.threads, taken_->size());
    return;
  }
  place.team = taken_;
  place.holds_team = true;
}

TeamHold::~TeamHold() {
  if (taken_ != nullptr) TeamPool::of_process().give_back(taken_);
}

ThreadTeam::ThreadTeam(int threads)
    : size_(std::min({threads > 0 ? threads : available_cores(), omp_get_thread_limit(),
                      WorkerTeam::kMostThreads})) {}

void ThreadTeam::run(const std::function<void(int)>& body) {
  const TeamScope scope(size_);
  const auto call = [](void* data) {
    (*static_cast<const std::function<void(int)>*>(data))(here().index);
  };
  void* data = const_cast<std::function<void(int)>*>(&body);
  const TeamRegion region(call, data, size_);
  for (int index = current_region().count; index < size_; ++index)
    body(index);  // no thread to be had
  call(data);
}

void ThreadTeam::park(const std::function<void()>& body) {
  struct Resting {
    WorkerTeam* const team;
    explicit Resting(WorkerTeam* t) : team(t) {
      if (team != nullptr) team->rest(true);
    }
    ~Resting() {
      if (team != nullptr) team->rest(false);
    }
  };
  const Resting resting(here().team);
  body();
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
