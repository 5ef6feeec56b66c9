#include "collage/tuning.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "compiler/compile.h"
#include "measure/pace.h"

namespace collage {

namespace internal {

// Shared by the thread and who started it.
struct TuningImpl {
  const Model model;
  const ProgramOptions options;
  const std::function<void(const Program&)> better;
  mutable std::mutex mutex = {};
  mutable std::condition_variable ended = {};
  bool done = false;
  Status status = {};  // once it is done

  void run() {
    Status result = tune();
    if (is_stopped()) result = {};
    const std::lock_guard lock(mutex);
    status = std::move(result);
    done = true;
    ended.notify_all();
  }

  bool is_stopped() const { return options.pace->is_stopped(); }

  Status tune() const {
    ProgramOptions quick = options;
    quick.budget_seconds = 0;
    const Program first = TRY(compile_model(model, quick, nullptr));
    if (is_stopped()) return {};
    const Program program = TRY(compile_model(model, options, nullptr));
    if (!is_stopped() && kernels_of(program) != kernels_of(first)) better(program);
    return {};
  }

  static std::vector<std::string> kernels_of(const Program& program) {
    std::vector<std::string> kernels;
    for (const ReportedPlan::Kernel& kernel : program.impl().report.kernels) {
      std::string text = kernel.target + " " + kernel.variant.to_string();
      for (PostDfsIndex node : kernel.nodes) text += " " + std::to_string(node);
      kernels.push_back(std::move(text));
    }
    return kernels;
  }
};

}  // namespace internal

Tuning::Tuning(std::shared_ptr<internal::TuningImpl> impl) : impl_(std::move(impl)) {}
Tuning::Tuning(Tuning&&) noexcept = default;
Tuning& Tuning::operator=(Tuning&& other) noexcept {
  std::swap(impl_, other.impl_);
  std::swap(thread_, other.thread_);
  return *this;
}

Tuning::~Tuning() {
  if (impl_ == nullptr) return;
  stop();
  if (std::this_thread::get_id() == thread_.get_id()) {  // in `better`
    thread_.detach();
  } else {
    thread_.join();
  }
}

Tuning Tuning::start(Model model, ProgramOptions options,
                     std::function<void(const Program&)> better) {
  constexpr double kForever = 1e9, kMostBusy = 0.05;
  options.budget_seconds = options.budget_seconds.value_or(kForever);
  options.pace = std::make_shared<Pace>(kMostBusy);
  Tuning tuning(std::shared_ptr<internal::TuningImpl>(
      new internal::TuningImpl{std::move(model), std::move(options), std::move(better)}));
  tuning.thread_ = std::thread([tuned = tuning.impl_] { tuned->run(); });
  return tuning;
}

bool Tuning::is_done() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->done;
}

bool Tuning::wait_for(double seconds) const {
  if (std::this_thread::get_id() == thread_.get_id()) return is_done();
  std::unique_lock lock(impl_->mutex);
  return impl_->ended.wait_for(lock, std::chrono::duration<double>(seconds),
                               [&] { return impl_->done; });
}

Status Tuning::wait() const {
  constexpr double kDay = 86400;
  if (std::this_thread::get_id() == thread_.get_id())
    return usage_error("it cannot wait for itself");
  while (!wait_for(kDay)) {
  }
  const std::lock_guard lock(impl_->mutex);
  return impl_->status;
}

void Tuning::stop() const { impl_->options.pace->stop(); }

}  // namespace collage
