#include "cost/measurer.h"

#include <algorithm>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>

#include "base/interrupt.h"
#include "base/log.h"
#include "measure/fault.h"
#include "measure/noise_gate.h"
#include "measure/pace.h"

namespace collage {

namespace {

TargetCosts refused(const std::string& target, const Status& why) {
  TargetCosts entry;
  entry.target = target;
  entry.refusal = why.to_string();
  entry.failure = fault_of(why).failure;
  log::info("{}: {}", target, entry.refusal);
  return entry;
}

// Under which a death is recorded.
std::string text_of(const MeasureTask& task) {
  if (const FunctionRequest* request = task.function()) return request->text;
  const auto& conversion = std::get<ConvertRequest>(task.request);
  return CostKeys::conversion_text(conversion.type, conversion.from, conversion.to);
}

}  // namespace

Measurer::Measurer(CostStore& store, CostOptions options)
    : store_(store),
      options_(std::move(options)),
      worker_(options_.worker_command, options_.limits) {}

MeasureTask Measurer::task_of(Request request, std::vector<std::string> targets) const {
  MeasureTask task;
  task.request = std::move(request);
  task.targets = std::move(targets);
  task.options = options_.compile;
  task.cache = options_.cache;
  task.effort = options_.effort;
  task.usual = store_.usual();
  return task;
}

Result<std::vector<TargetCosts>> Measurer::run(MeasureTask task) {
  const std::string text = text_of(task);
  store_.skip_quarantined(task, text);
  std::unique_lock<std::mutex> turn;
  if (task.times()) turn = turn_to_measure();
  // Recorded at once: a run that is ended by hand because something hangs does not hang again.
  return worker_.measure(std::move(task), [&](const std::string& subject, const Invalid& how) {
    store_.put_in_quarantine(text, subject, how);
  });
}

Result<Measurer::Answer> Measurer::settled(const MeasureTask& task,
                                           Result<std::vector<TargetCosts>> answer) {
  if (answer.ok()) return Answer(std::move(answer).value());
  if (answer.status().code() == ErrorCode::kUnavailable) {
    if (!interrupted()) return std::move(answer).status();
    return Answer();
  }
  Answer refusals(std::in_place);
  for (const std::string& target : task.targets)
    refusals->push_back(refused(target, answer.status()));
  return refusals;
}

double Measurer::rested() const { return options_.pace != nullptr ? options_.pace->rested() : 0; }

void Measurer::time_for(double seconds) { allowed_ = {seconds - rested(), Stopwatch()}; }

bool Measurer::is_over() const {
  const bool over = is_stopped(options_.pace) ||
                    (allowed_ && allowed_->second.seconds() - rested() > allowed_->first);
  was_over_ |= over;
  return over;
}

void Measurer::rest() {
  if (options_.pace != nullptr) options_.pace->rest();
}

Result<Measurer::Answer> Measurer::ask(MeasureTask task) {
  rest();
  if (task.times() ? is_over() : is_stopped(options_.pace)) return Answer();
  return settled(task, run(task));
}

Worker::Answers Measurer::run_together(std::vector<MeasureTask> tasks) {
  Result<std::optional<Worker::Answers>> all = std::optional<Worker::Answers>();
  if (tasks.size() > 1) {
    std::vector<MeasureTask> together = tasks;
    for (MeasureTask& task : together) store_.skip_quarantined(task, text_of(task));
    const std::unique_lock<std::mutex> turn = turn_to_measure();
    all = worker_.measure_together(together);
  }
  if (!all.ok()) return Worker::Answers(tasks.size(), all.status());
  if (*all) return std::move(**all);
  Worker::Answers answers;
  for (MeasureTask& task : tasks) answers.push_back(run(std::move(task)));
  return answers;
}

Result<std::vector<Measurer::Answer>> Measurer::ask_together(std::vector<MeasureTask> tasks) {
  constexpr size_t kMostTogether = 32;
  constexpr double kMostBytes = 256 << 20, kVariants = 3;  // guessed: a target's
  std::vector<Answer> answers;
  while (answers.size() < tasks.size()) {
    rest();
    if (is_over()) {
      answers.resize(tasks.size());
      break;
    }
    std::vector<MeasureTask> together;
    double bytes = 0;
    for (size_t i = answers.size(); i < tasks.size() && together.size() < kMostTogether; ++i) {
      bytes += std::get<TimeRequest>(tasks[i].request).bytes * kVariants *
               static_cast<double>(tasks[i].targets.size());
      if (!together.empty() && bytes > kMostBytes) break;
      together.push_back(tasks[i]);
    }
    for (Result<std::vector<TargetCosts>>& answer : run_together(std::move(together)))
      answers.push_back(TRY(settled(tasks[answers.size()], std::move(answer))));
  }
  return answers;
}

void Measurer::ask_beside(std::vector<MeasureTask> tasks,
                          const std::function<void(size_t task, TargetCosts answer)>& answered,
                          const std::function<void(size_t)>& done) {
  const size_t workers =
      std::min(static_cast<size_t>(std::max(1, options_.compile.threads)), tasks.size());
  if (workers < 2 || options_.pace != nullptr) return;
  std::mutex mutex;  // of the store, and of what follows
  size_t next = 0, ended = 0;
  const auto work = [&](Worker& worker, bool tells) {
    std::unique_lock<std::mutex> lock(mutex);
    while (next < tasks.size() && !is_stopped(options_.pace)) {
      const size_t number = next++;
      const std::string text = text_of(tasks[number]);
      store_.skip_quarantined(tasks[number], text);
      lock.unlock();
      Result<std::vector<TargetCosts>> answer = worker.measure(
          std::move(tasks[number]), [&](const std::string& subject, const Invalid& how) {
            const std::lock_guard<std::mutex> held(mutex);
            store_.put_in_quarantine(text, subject, how);
          });
      if (tells) done(ended);
      lock.lock();
      ++ended;
      if (answer.ok()) answered(number, std::move(answer->at(0)));
    }
  };
  std::vector<std::unique_ptr<Worker>> others;
  std::vector<std::future<void>> running;
  for (size_t i = 1; i < workers; ++i) {
    others.push_back(std::make_unique<Worker>(options_.worker_command, options_.limits));
    try {
      running.push_back(std::async(std::launch::async, work, std::ref(*others.back()), false));
    } catch (const std::system_error&) {  // no thread to be had: those that there are do it
      break;
    }
  }
  work(worker_, true);
  for (std::future<void>& one : running) one.wait();
}

}  // namespace collage
