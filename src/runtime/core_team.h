// CoreTeam: threads on cores of their own, one a core, that compute for other threads of the
// process: a CPU device beside cpu:0 (little cores, another NUMA node), whose memory is the host's.
// One of them leads the others (worker_team.h) and does tasks one after the other, in the order in
// which they were given. A process has one team for each set of cores, from its first use on.
//
//   CoreTask task([&] { return kernel.run(args); });
//   CoreTeam::of(cores).begin(task);
//   Status status = task.wait();  // before the task is destroyed
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "runtime/cores.h"
#include "runtime/kernel.h"
#include "runtime/run_number.h"
#include "runtime/worker_team.h"

namespace collage {

class CoreTeam;

class CoreTask {
 public:
  explicit CoreTask(std::function<Status()> body) : body_(std::move(body)) {}
  // Waits until the team has done it, and returns what the body returned.
  Status wait();

 private:
  friend class CoreTeam;
  std::function<Status()> body_;
  RunNumber::State numbers_;  // of the thread that gave it
  Status status_;
  std::atomic<bool> done_{false};
  CoreTeam* team_ = nullptr;
  CoreTask* next_ = nullptr;
};

class CoreTeam {
 public:
  static CoreTeam& of(const Cores& cores);
  explicit CoreTeam(const Cores& cores);  // never destroyed: its threads stay
  CoreTeam(const CoreTeam&) = delete;
  CoreTeam& operator=(const CoreTeam&) = delete;

  // Returns at once; where the team's own task gives it, once it is done.
  void begin(CoreTask& task);

 private:
  friend class CoreTask;
  void lead();
  CoreTask* take();
  void finish(CoreTask& task, Status status);

  const Cores cores_;
  bool started_ = false;
  std::mutex mutex_;
  CoreTask *first_ = nullptr, *last_ = nullptr;  // given and not begun
  Signal given_, finished_;                      // how many
};

// A kernel that a team computes with.
class CoreKernel : public Kernel {
 public:
  // `kernel` is compiled for as many threads as there are cores.
  CoreKernel(std::shared_ptr<Kernel> kernel, Cores cores)
      : kernel_(std::move(kernel)), cores_(std::move(cores)) {}
  const std::shared_ptr<Kernel>& kernel() const { return kernel_; }
  const Cores& cores() const { return cores_; }

  void begin(CoreTask& task) const { CoreTeam::of(cores_).begin(task); }
  Status run(const KernelArgs& args) override;
  Result<std::shared_ptr<Kernel>> twin() const override;
  bool twins_take_turns() const override { return true; }
  Result<KernelSource> source() const override {
    return unsupported("it runs on the cores {} alone", cores_.to_string());
  }
  size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  size_t constant_bytes() const override { return kernel_->constant_bytes(); }
  std::vector<InPlace> in_place() const override { return kernel_->in_place(); }

 private:
  const std::shared_ptr<Kernel> kernel_;
  const Cores cores_;
};

// Returns the kernel that a CoreKernel runs, and of others themselves.
inline const Kernel& own_kernel(const Kernel& kernel) {
  const auto* on_cores = dynamic_cast<const CoreKernel*>(&kernel);
  return on_cores != nullptr ? *on_cores->kernel() : kernel;
}

}  // namespace collage
