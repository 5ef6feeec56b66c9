#include "cost/measured_costs.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "cost/analytic.h"
#include "ir/text_printer.h"
#include "ir/work.h"
#include "measure/blocks.h"
#include "measure/fault.h"
#include "measure/noise_gate.h"
#include "tensor_program/external_call.h"

namespace collage {

using nlohmann::json;

namespace {

TargetCosts refused(const std::string& target, const Status& why) {
  TargetCosts entry;
  entry.target = target;
  entry.refusal = why.to_string();
  entry.failure = fault_of(why).failure;
  log::info("{}: {}", target, entry.refusal);
  return entry;
}

// Of the rows that the variant is among.
RoundingLimit rounding_of(const Variant& variant) {
  return variant.lowered() ? RoundingLimit::kAny : RoundingLimit::kDefault;
}

}  // namespace

MeasuredCosts::MeasuredCosts(CostDatabase& database, CostOptions options)
    : database_(database),
      options_(std::move(options)),
      worker_(options_.worker_command, options_.limits),
      keys_(options_.compile.threads, options_.cache),
      bounds_(options_.compile.threads) {
  database_.believe_foreign(options_.frozen);
  for (const CoreFact& fact : kCoreFacts)
    usual_.*fact.value =
        find_value(database_, "machine", CostDatabase::key_of(fact.name, keys_.processor()),
                   [&](const json& value) { return core_fact_from_json(fact, value); })
            .value_or(0);
}

void MeasuredCosts::learn_usual(const Conditions& conditions) {
  constexpr double kNews = 0.98;
  for (const CoreFact& fact : kCoreFacts) {
    const double seen = conditions.usual.*fact.value;
    double& known = usual_.*fact.value;
    if (seen < fact.range.low || (known != 0 && seen > kNews * known)) continue;
    known = seen;
    database_.put("machine", CostDatabase::key_of(fact.name, keys_.processor()), fact.name,
                  json_text(to_json(fact, seen)), keys_.processor());
  }
}

Result<std::vector<TargetCosts>> MeasuredCosts::run_worker(MeasureTask task,
                                                           const std::string& text) {
  add_quarantine(task, text);
  std::unique_lock<std::mutex> turn;
  if (task.times()) turn = turn_to_measure();
  // Recorded at once: a run that is ended by hand because something hangs does not hang again.
  return worker_.measure(std::move(task), [&](const std::string& subject, const Invalid& how) {
    put_in_quarantine(text, subject, how);
  });
}

void MeasuredCosts::put_in_quarantine(const std::string& text, const std::string& subject,
                                      const Invalid& how) {
  if (is_of_machine(how.failure)) return;
  std::string context = CostKeys::quarantine_context(subject.substr(0, subject.find('|')));
  std::string key = CostDatabase::key_of(text, context);
  Quarantine known =
      find_value(database_, "quarantine", key, quarantine_from_json).value_or(Quarantine());
  known[subject] = how;
  database_.put("quarantine", key, text, json_text(to_json(known)), context);
}

Result<std::optional<std::vector<TargetCosts>>> MeasuredCosts::ask(MeasureTask task,
                                                                   const std::string& text) {
  constexpr std::optional<std::vector<TargetCosts>> kInterrupted;
  if (interrupted()) return kInterrupted;
  Result<std::vector<TargetCosts>> answer = run_worker(task, text);
  if (answer.ok()) return std::optional(std::move(answer).value());
  if (answer.status().code() == ErrorCode::kUnavailable) {
    if (!interrupted()) return answer.status();
    return kInterrupted;
  }
  std::vector<TargetCosts> refusals;
  for (const std::string& target : task.targets)
    refusals.push_back(refused(target, answer.status()));
  return std::optional(std::move(refusals));
}

double MeasuredCosts::seconds_per_measurement() {
  constexpr double kGuess = 0.4;
  return database_
      .average("function", "$.seconds", "$.effort", std::string(effort_name(options_.effort)))
      .value_or(kGuess);
}

MeasureTask MeasuredCosts::task_of(Request request, std::vector<std::string> targets) const {
  MeasureTask task;
  task.request = std::move(request);
  task.targets = std::move(targets);
  task.options = options_.compile;
  task.cache = options_.cache;
  task.effort = options_.effort;
  task.usual = usual_;
  return task;
}

Worker::Answers MeasuredCosts::run_worker(std::vector<MeasureTask> tasks) {
  constexpr size_t kMostTogether = 32;
  constexpr double kMostBytes = 256 << 20, kVariants = 3;  // guessed: a target's
  Worker::Answers answers;
  for (size_t first = 0; first < tasks.size();) {
    std::vector<MeasureTask> together;
    double bytes = 0;
    for (size_t i = first; i < tasks.size() && together.size() < kMostTogether; ++i) {
      bytes += std::get<TimeRequest>(tasks[i].request).bytes * kVariants *
               static_cast<double>(tasks[i].targets.size());
      if (!together.empty() && bytes > kMostBytes) break;
      together.push_back(tasks[i]);
      add_quarantine(together.back(), together.back().function()->text);
    }
    Result<std::optional<Worker::Answers>> all = std::optional<Worker::Answers>();
    if (together.size() > 1) {
      const std::unique_lock<std::mutex> turn = turn_to_measure();
      all = worker_.measure_together(together);
    }
    for (size_t i = 0; i < together.size(); ++i) {
      if (!all.ok()) {
        answers.push_back(all.status());
      } else if (*all) {
        answers.push_back(std::move((**all)[i]));
      } else {
        answers.push_back(run_worker(tasks[first + i], tasks[first + i].function()->text));
      }
    }
    first += together.size();
  }
  return answers;
}

Result<std::vector<TargetCosts>> MeasuredCosts::function_costs(const Function& function,
                                                               const std::vector<Target>& targets,
                                                               RoundingLimit rounding) {
  return std::move(TRY(function_costs({{function, targets}}, rounding)).at(0));
}

Result<std::vector<std::vector<TargetCosts>>> MeasuredCosts::function_costs(
    const std::vector<FunctionQuestion>& questions, RoundingLimit rounding) {
  std::vector<std::vector<TargetCosts>> result(questions.size());
  std::vector<MeasureTask> tasks;
  std::vector<std::pair<size_t, std::vector<size_t>>> missing;  // of each task: question, targets
  for (size_t q = 0; q < questions.size(); ++q) {
    const auto& [function, targets] = questions[q];
    TimeRequest request;
    request.text = canonical_text(function);
    request.bytes = function_bytes(function);
    std::vector<std::string> asked;
    result[q].resize(targets.size());
    if (tensor_program::is_local(function)) {
      for (size_t i = 0; i < targets.size(); ++i)
        result[q][i] = TRY(listed_here(function, targets[i], rounding));
      continue;
    }
    std::vector<size_t> unknown;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (std::optional<TargetCosts> known =
              find_function(request.text, targets[i], options_.frozen, rounding, &function)) {
        result[q][i] = std::move(*known);
        bounds_.learn(function, request.text, result[q][i]);
        ++counts_.cached;
        continue;
      }
      if (options_.frozen) {
        result[q][i] = TRY(frozen_answer(function, request.text, targets[i], rounding));
        continue;
      }
      unknown.push_back(i);
      asked.push_back(targets[i].to_string());
      if (rounding != RoundingLimit::kAny) add_searched(request, targets[i]);
    }
    if (unknown.empty()) continue;
    tasks.push_back(task_of(std::move(request), std::move(asked)));
    tasks.back().options.rounding = rounding;
    missing.emplace_back(q, std::move(unknown));
  }
  const Stopwatch watch;
  const Worker::Answers answers =
      interrupted() ? Worker::Answers(tasks.size(), Status(ErrorCode::kUnavailable, ""))
                    : run_worker(tasks);
  const double seconds = watch.seconds() / static_cast<double>(std::max<size_t>(1, tasks.size()));
  for (size_t m = 0; m < tasks.size(); ++m) {
    const auto& [q, unknown] = missing[m];
    const bool unavailable = answers[m].status().code() == ErrorCode::kUnavailable;
    if (unavailable && !interrupted()) return answers[m].status();
    for (size_t i = 0; i < unknown.size(); ++i) {
      const Target& target = questions[q].targets[unknown[i]];
      TargetCosts& entry = result[q][unknown[i]];
      if (unavailable) {
        entry = TRY(not_measured(questions[q].function, target));
        continue;
      }
      entry =
          answers[m].ok() ? (*answers[m])[i] : refused(tasks[m].targets[i], answers[m].status());
      entry.seconds = seconds / static_cast<double>(unknown.size());
      ++counts_.measured;
      counts_.disturbed += entry.conditions.disturbed;
      learn_usual(entry.conditions);
      const std::string& text = tasks[m].function()->text;
      measured_now_.insert(context_of(target, rounding) + text);
      put_costs("function", text, target, rounding, entry);
      bounds_.learn(questions[q].function, text, entry);
    }
  }
  for (const std::vector<TargetCosts>& entries : result)
    for (const TargetCosts& entry : entries) count_invalid(entry);
  return result;
}

Result<std::vector<std::vector<TargetCosts>>> MeasuredCosts::offers(
    const std::vector<FunctionQuestion>& questions) {
  std::vector<std::vector<TargetCosts>> result;
  for (const auto& [function, targets] : questions) {
    const std::string text = canonical_text(function);
    std::vector<TargetCosts>& entries = result.emplace_back();
    for (const Target& target : targets) {
      entries.push_back(TRY(offer(function, text, target)));
      bounds_.learn(function, text, entries.back());
    }
    // Of what has variants that nobody measured there will be another answer.
    for (const TargetCosts& entry : entries) {
      const bool complete = std::none_of(
          entry.variants.begin(), entry.variants.end(),
          [](const MeasuredVariant& row) { return std::holds_alternative<Unknown>(row.cost); });
      counts_.cached += complete && !entry.variants.empty();
      if (complete) count_invalid(entry);
    }
  }
  return result;
}

Result<TargetCosts> MeasuredCosts::offer(const Function& function, const std::string& text,
                                         const Target& target) {
  if (tensor_program::is_local(function))
    return listed_here(function, target, RoundingLimit::kDefault);
  if (std::optional<TargetCosts> known = find_offer(text, target, &function))
    return std::move(*known);
  if (options_.frozen) return frozen_miss(text, target);
  std::optional<std::vector<TargetCosts>> listed =
      TRY(ask(task_of(ListRequest{{text}}, {target.to_string()}), text));
  if (!listed) return not_measured(function, target);
  put_costs("trial", text, target, RoundingLimit::kDefault, listed->at(0));
  return std::move(listed->at(0));
}

void MeasuredCosts::count_invalid(const TargetCosts& costs) {
  const auto count = [&](WorkerFailure failure) {
    counts_.crashed += failure == WorkerFailure::kCrash;
    counts_.silent += failure == WorkerFailure::kTimeout;
    counts_.out_of_memory += failure == WorkerFailure::kMemory;
    counts_.lacking += failure == WorkerFailure::kMachine;
  };
  count(costs.failure);
  for (const MeasuredVariant& row : costs.variants) {
    const auto* invalid = std::get_if<Invalid>(&row.cost);
    if (invalid == nullptr) continue;
    ++counts_.invalid;
    count(invalid->failure);
  }
}

Result<std::vector<std::optional<Cost>>> MeasuredCosts::add_blocks(
    const std::vector<KernelQuestion>& kernels) {
  std::vector<std::optional<Cost>> result(kernels.size());
  if (interrupted()) return result;
  std::vector<MeasureTask> tasks;
  std::vector<size_t> asked;  // of each task: which of the kernels
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto& [function, target, variant] = kernels[k];
    const std::string text = canonical_text(function), name = target.to_string();
    const RoundingLimit rounding = rounding_of(variant);
    if (measured_now_.count(context_of(target, rounding) + text) == 0) continue;
    tasks.push_back(
        task_of(TimeRequest{{text, {{name, {variant}}}, true}, function_bytes(function)}, {name}));
    tasks.back().options.rounding = rounding;
    asked.push_back(k);
  }
  const Worker::Answers answers = run_worker(tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (answers[i].status().code() == ErrorCode::kUnavailable && !interrupted())
      return answers[i].status();
    if (answers[i].ok())
      result[asked[i]] =
          add_to_row(kernels[asked[i]], tasks[i].function()->text, answers[i]->at(0));
  }
  return result;
}

std::optional<Cost> MeasuredCosts::add_to_row(const KernelQuestion& kernel, const std::string& text,
                                              TargetCosts answer) {
  const RoundingLimit rounding = rounding_of(kernel.used);
  std::optional<TargetCosts> known =
      find_costs("function", text, kernel.target, rounding, &kernel.function);
  if (!known) return std::nullopt;
  auto cost_in = [&](TargetCosts& costs) -> Cost* {
    for (MeasuredVariant& row : costs.variants)
      if (row.variant == kernel.used) return &row.cost;
    return nullptr;
  };
  Cost *cost = cost_in(*known), *again = cost_in(answer);
  if (cost == nullptr || again == nullptr) return std::nullopt;
  const Measured *before = measured(*cost), *after = measured(*again);
  if (before != nullptr && after != nullptr) {
    std::vector<Block> blocks = blocks_of(*before);
    if (blocks.size() >= kMostKeptBlocks) blocks.erase(blocks.begin());
    blocks.push_back(blocks_of(*after)[0]);
    *cost = of_blocks(std::move(blocks));
  } else if (const auto* invalid = std::get_if<Invalid>(again);
             invalid != nullptr && !is_of_machine(invalid->failure)) {
    *cost = *invalid;
  } else {
    return std::nullopt;
  }
  put_costs("function", text, kernel.target, rounding, *known);
  bounds_.learn(kernel.function, text, *known);
  return *cost;
}

Result<std::vector<TargetCosts>> MeasuredCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  // Targets of one function are rivals, and measured as such.
  std::vector<FunctionQuestion> functions;
  std::map<std::string, size_t> function_of;
  std::vector<std::pair<size_t, size_t>> places;  // of each question: function, target
  for (const KernelQuestion& question : questions) {
    const auto [it, is_new] =
        function_of.try_emplace(canonical_text(question.function), functions.size());
    if (is_new) functions.push_back({question.function, {}});
    std::vector<Target>& targets = functions[it->second].targets;
    const auto target = std::find(targets.begin(), targets.end(), question.target);
    places.emplace_back(it->second, target - targets.begin());
    if (target == targets.end()) targets.push_back(question.target);
  }
  const std::vector<std::vector<TargetCosts>> all = TRY(function_costs(functions));
  std::vector<TargetCosts> answers;
  for (const auto& [function, target] : places) answers.push_back(all[function][target]);
  return answers;
}

double MeasuredCosts::kernel_estimate(const Function& function, const TargetCosts& costs,
                                      size_t variant) const {
  if (const double elsewhere = costs.variants[variant].elsewhere; elsewhere > 0) return elsewhere;
  const Result<Target> target = Target::parse(costs.target);
  const Backend* backend = target ? find_backend(target->kind) : nullptr;
  if (backend == nullptr || backend->traits().is_host) return analytic_seconds(function);
  return bounds_.least(function, *target);
}

}  // namespace collage
