#include "collage/tuning.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "compiler/compile.h"
#include "measure/pace.h"

namespace collage {

namespace internal {

struct TuningImpl {
  Model model;
  ProgramOptions options;
  std::function<void(const Program&)> better;
  std::atomic<bool> done = false;
  Status status = {};  // once it is done
  std::thread thread = {};

  void run() {
    status = tune();
    done = true;
  }

  Status tune() {
    Result<Program> program = compile_model(model, options, nullptr);
    if (!program) return options.pace->is_stopped() ? Status() : program.status();
    if (options.pace->is_stopped()) return {};
    const CompileReport& report = program->impl().report;
    const bool is_new =
        std::none_of(report.covers.begin(), report.covers.end(), [](const ReportedPlan& cover) {
          return cover.chosen && (cover.origin == kKnownPlan || cover.origin == kFirstAnswer);
        });
    if (is_new) better(*program);
    return {};
  }
};

}  // namespace internal

Tuning::Tuning(std::unique_ptr<internal::TuningImpl> impl) : impl_(std::move(impl)) {}
Tuning::Tuning(Tuning&&) noexcept = default;
Tuning& Tuning::operator=(Tuning&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Tuning::~Tuning() {
  if (impl_ == nullptr) return;
  stop();
  (void)wait();
}

Tuning Tuning::start(Model model, ProgramOptions options,
                     std::function<void(const Program&)> better) {
  constexpr double kForever = 1e9, kMostBusy = 0.05;
  options.budget_seconds = options.budget_seconds.value_or(kForever);
  options.pace = std::make_shared<Pace>(kMostBusy);
  auto impl = std::unique_ptr<internal::TuningImpl>(
      new internal::TuningImpl{std::move(model), std::move(options), std::move(better)});
  impl->thread = std::thread([tuned = impl.get()] { tuned->run(); });
  return Tuning(std::move(impl));
}

bool Tuning::is_done() const { return impl_->done; }

Status Tuning::wait() {
  if (impl_->thread.joinable()) impl_->thread.join();
  return impl_->status;
}

void Tuning::stop() { impl_->options.pace->stop(); }

}  // namespace collage
