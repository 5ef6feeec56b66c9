#include "runtime/team_pool.h"

#include <pthread.h>

#include <algorithm>

#include "runtime/of_process.h"
#include "runtime/team_region.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// The workers of the parent are not in the child.
void begin_child() {
  const int threads = here().threads;
  here() = Place();
  here().threads = threads;
}

// A fork waits for a thread that makes what a process has once: the child, which does not have that
// thread, would wait for it for ever.
void before_fork() {
  find_openmp();
  (void)TeamPool::of_process();
}

[[maybe_unused]] const int kForksWait = pthread_atfork(before_fork, nullptr, begin_child);

}  // namespace

TeamPool& TeamPool::of_process() {
  // Never destroyed: workers of the last one may still be awake.
  static auto* pools = new OfProcess<TeamPool>(
      [] { return std::make_unique<TeamPool>(ThreadTeam::available_cores()); });
  return pools->get();
}

int TeamPool::most_workers(int threads) const { return std::max(cores_, threads - 1); }

// Whether workers of idle teams are enough, or may end to make room.
bool TeamPool::fits(int threads) const {
  int idle = 0;
  for (const WorkerTeam* team : idle_) {
    if (team->size() >= threads) return true;
    idle += team->size() - 1;
  }
  return workers_ - idle + threads - 1 <= most_workers(threads);
}

// The smallest that is large enough, else the largest; of equal ones the last one used. Taken from
// the idle ones, or made.
WorkerTeam* TeamPool::best_idle(int threads) {
  auto best = idle_.end();
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    if (best == idle_.end()) {
      best = it;
      continue;
    }
    const int size = (*it)->size(), best_size = (*best)->size();
    const bool better =
        best_size < threads ? size >= best_size : size >= threads && size <= best_size;
    if (better) best = it;
  }
  if (best == idle_.end()) return teams_.emplace_back(std::make_unique<WorkerTeam>()).get();
  WorkerTeam* team = *best;
  idle_.erase(best);
  return team;
}

WorkerTeam* TeamPool::take(int threads, bool may_wait) {
  std::unique_lock lock(mutex_);
  if (may_wait && (!waiting_.empty() || !fits(threads))) {
    const uint64_t turn = waiting_.emplace_back(next_turn_++);
    changed_.wait(lock, [&] { return waiting_.front() == turn && fits(threads); });
    waiting_.pop_front();
    changed_.notify_all();
  }
  WorkerTeam* team = best_idle(threads);
  if (team->size() < threads) {
    const int before = team->size();
    const auto too_many = [&] { return workers_ - before + threads - most_workers(threads); };
    for (WorkerTeam* other : idle_) {
      if (too_many() <= 0) break;
      const int size = other->size();
      other->resize(std::max(1, size - too_many()));
      workers_ -= size - other->size();
    }
    team->resize(threads);
    workers_ += team->size() - before;
  }
  lock.unlock();
  team->follow_caller(threads);
  return team;
}

void TeamPool::give_back(WorkerTeam* team) {
  const std::lock_guard lock(mutex_);
  const auto own = [&](const auto& each) { return each.get() == team; };
  if (std::none_of(teams_.begin(), teams_.end(), own)) return;
  team->rest(false);
  // Who could not wait may have made more workers than there should be.
  if (const int extra = workers_ - most_workers(team->size()); extra > 0) {
    const int size = team->size();
    team->resize(std::max(1, size - extra));
    workers_ -= size - team->size();
  }
  idle_.push_back(team);
  changed_.notify_all();
}

int TeamPool::workers() {
  const std::lock_guard lock(mutex_);
  return workers_;
}

}  // namespace collage
