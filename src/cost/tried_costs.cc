// MeasuredCosts without timing: variants are tried until one computes right.
#include <algorithm>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <system_error>

#include "base/interrupt.h"
#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "tensor_program/external_call.h"

namespace collage {

Result<TargetCosts> MeasuredCosts::tried_function(const Function& function, const Target& target,
                                                  const Variant* wanted) {
  if (tensor_program::is_local(function)) {
    // As with the host, whose kernels are not tried either: whole programs are verified.
    TargetCosts entry = TRY(listed_here(function, target, RoundingLimit::kDefault));
    for (MeasuredVariant& row : entry.variants) row.tried = true;
    return entry;
  }
  std::string text = canonical_text(function);
  if (std::optional<TargetCosts> known =
          find_function(text, target, true, RoundingLimit::kDefault, &function)) {
    ++counts_.cached;
    count_invalid(*known);
    return std::move(*known);
  }
  auto is_wanted = [&](const MeasuredVariant& row) { return row.variant == *wanted; };
  std::optional<TargetCosts> known =
      find_costs("trial", text, target, RoundingLimit::kDefault, &function);
  if (known && (wanted == nullptr ||
                std::any_of(known->variants.begin(), known->variants.end(), [&](const auto& row) {
                  return is_wanted(row) &&
                         (row.tried || !std::holds_alternative<Unknown>(row.cost));
                }))) {
    ++counts_.cached;
    return std::move(*known);
  }
  TryFirstRequest request{{text}};
  if (wanted != nullptr && known) {
    request.named[target.to_string()] = {*wanted};
    request.only_named = true;
  }
  MeasureTask task = task_of(std::move(request), {target.to_string()});
  if (wanted != nullptr && !known)
    task.only = MeasuredVariant{*wanted, {}}.subject(target.to_string());
  std::optional<std::vector<TargetCosts>> answer = TRY(ask(std::move(task), text));
  if (!answer) return not_measured(function, target);
  TargetCosts entry = std::move(answer->at(0));
  ++counts_.tried;
  // Of the others it says nothing new.
  if (known && entry.refusal.empty()) {
    for (MeasuredVariant& row : entry.variants) {
      if (!is_wanted(row)) continue;
      const auto old = std::find_if(known->variants.begin(), known->variants.end(), is_wanted);
      if (old != known->variants.end()) {
        *old = std::move(row);
      } else {
        known->variants.push_back(std::move(row));
      }
    }
    entry = std::move(*known);
  }
  count_invalid(entry);
  put_costs("trial", text, target, RoundingLimit::kDefault, entry);
  // One that the target does not list was not tried.
  const bool unlisted = wanted != nullptr && !known && entry.refusal.empty() &&
                        std::none_of(entry.variants.begin(), entry.variants.end(), is_wanted);
  return unlisted ? tried_function(function, target, wanted) : std::move(entry);
}

void MeasuredCosts::try_ahead(const std::vector<Trial>& trials,
                              const std::function<void(size_t)>& done) {
  struct Pending {
    std::string text;
    const Trial* trial;
    MeasureTask task;
  };
  std::vector<Pending> pending;
  std::set<std::string> seen;
  for (const Trial& trial : trials) {
    if (tensor_program::is_local(trial.function)) continue;
    std::string text = canonical_text(trial.function);
    if (!seen.insert(trial.target.to_string() + text).second) continue;
    if (find_function(text, trial.target, true, RoundingLimit::kDefault) ||
        find_costs("trial", text, trial.target, RoundingLimit::kDefault))
      continue;
    MeasureTask task = task_of(TryFirstRequest{{text}}, {trial.target.to_string()});
    add_quarantine(task, text);
    pending.push_back({std::move(text), &trial, std::move(task)});
  }
  const size_t workers =
      std::min(static_cast<size_t>(std::max(1, options_.compile.threads)), pending.size());
  if (workers < 2) return;  // tried_function does as well
  std::mutex mutex;         // of the database, and of what follows
  size_t next = 0, ended = 0;
  const auto work = [&](Worker& worker, bool tells) {
    std::unique_lock<std::mutex> lock(mutex);
    while (next < pending.size() && !interrupted()) {
      Pending& one = pending[next++];
      lock.unlock();
      Result<std::vector<TargetCosts>> answer =
          worker.measure(std::move(one.task), [&](const std::string& subject, const Invalid& how) {
            const std::lock_guard<std::mutex> held(mutex);
            put_in_quarantine(one.text, subject, how);
          });
      if (tells) done(ended);
      lock.lock();
      ++ended;
      if (!answer.ok()) continue;
      ++counts_.tried;
      put_costs("trial", one.text, one.trial->target, RoundingLimit::kDefault, answer->at(0));
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
