#include "runtime/core_team.h"

#include <pthread.h>
#include <signal.h>

#include <map>
#include <memory>

#include "base/no_exceptions.h"
#include "runtime/of_process.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

struct CoreTeams {
  std::mutex mutex;
  std::map<Cores, CoreTeam*> teams;
};

thread_local const CoreTeam* led = nullptr;  // by this thread

}  // namespace

CoreTeam& CoreTeam::of(const Cores& cores) {
  static auto* all = new OfProcess<CoreTeams>;
  CoreTeams& own = all->get();
  const std::lock_guard lock(own.mutex);
  CoreTeam*& team = own.teams[cores];
  if (team == nullptr) team = new CoreTeam(cores);
  return *team;
}

CoreTeam::CoreTeam(const Cores& cores) : cores_(cores) {
  // Signals are the application's, for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto lead = [](void* team) -> void* {
    static_cast<CoreTeam*>(team)->lead();
    return nullptr;
  };
  pthread_t leader;
  started_ = pthread_create(&leader, nullptr, lead, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started_) pthread_detach(leader);
}

void CoreTeam::begin(CoreTask& task) {
  task.numbers_ = RunNumber::state();
  task.team_ = this;
  task.next_ = nullptr;
  task.done_ = false;
  if (!started_)
    return finish(task, internal_error("no thread for the cores {}", cores_.to_string()));
  if (led == this) return finish(task, without_exceptions(task.body_));
  const std::lock_guard lock(mutex_);
  (first_ == nullptr ? first_ : last_->next_) = &task;
  last_ = &task;
  given_.set(given_.value() + 1);
}

CoreTask* CoreTeam::take() {
  const std::lock_guard lock(mutex_);
  CoreTask* const task = first_;
  if (task != nullptr) first_ = task->next_;
  return task;
}

// Who waits may destroy the task as soon as it is done.
void CoreTeam::finish(CoreTask& task, Status status) {
  task.status_ = std::move(status);
  task.done_.store(true, std::memory_order_release);
  finished_.set(finished_.value() + 1);
}

void CoreTeam::lead() {
  led = this;
  WorkerTeam workers;
  here().team = &workers;
  here().holds_team = true;
  Status ready = cores_.bind_thread();
  workers.resize(cores_.count());
  if (ready.ok() && workers.size() < cores_.count())
    ready = internal_error("a team of {} threads cannot be had: the system gives {}",
                           cores_.count(), workers.size());
  const TeamScope scope(cores_.count());
  for (;;) {
    const uint32_t given = given_.value();
    CoreTask* const task = take();
    if (task == nullptr) {
      given_.wait_while(given);
      continue;
    }
    workers.follow_caller(cores_.count());
    const RunNumber numbers(task->numbers_);
    finish(*task, ready.ok() ? without_exceptions(task->body_) : ready);
  }
}

Status CoreTask::wait() {
  // On one of the team's cores it leaves that to the team.
  const std::atomic<bool> resting(team_->cores_.contains(sched_getcpu()));
  for (;;) {
    const uint32_t finished = team_->finished_.value();
    if (done_.load(std::memory_order_acquire)) return status_;
    team_->finished_.wait_while(finished, &resting);
  }
}

Status CoreKernel::run(const KernelArgs& args) {
  CoreTask task([&] { return kernel_->run(args); });
  begin(task);
  return task.wait();
}

Result<std::shared_ptr<Kernel>> CoreKernel::twin() const {
  std::shared_ptr<Kernel> twin = TRY(kernel_->twin());
  return std::shared_ptr<Kernel>(
      std::make_shared<CoreKernel>(twin != nullptr ? std::move(twin) : kernel_, cores_));
}

}  // namespace collage
