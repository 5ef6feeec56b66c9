// MeasuredCosts by timing; what only tries is in tried_costs.cc.
#include "cost/measured_costs.h"

#include <collage/collage.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/interrupt.h"
#include "base/stopwatch.h"
#include "cost/analytic.h"
#include "ir/text_printer.h"
#include "ir/work.h"
#include "measure/blocks.h"
#include "measure/fault.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

// The kind of rows that say there has been a search of schedules, and what it found.
constexpr const char* kSearched = "schedules";

constexpr const char* kNotMeasured = "not measured: interrupted, or there was no time";

// Of the rows that the variant is among.
RoundingLimit rounding_of(const Variant& variant) {
  return variant.lowered() ? RoundingLimit::kAny : RoundingLimit::kDefault;
}

CostKey key_of(const KernelQuestion& kernel) {
  return {canonical_text(kernel.function), kernel.target, rounding_of(kernel.used)};
}

// What is no time is not given.
std::optional<double> checked(std::optional<double> seconds) {
  constexpr double kYear = 3e7;
  return seconds && *seconds > 0 && *seconds < kYear ? seconds : std::nullopt;
}

Cost cost_of(double seconds) { return Measured{seconds, seconds, seconds, 1}; }

bool is_host(const Target& target) {
  const Backend* backend = find_backend(target.kind);
  return backend != nullptr && backend->traits().is_host;
}

}  // namespace

MeasuredCosts::MeasuredCosts(CostDatabase& database, const CostOptions& options)
    : options_(options),
      store_(std::make_shared<CostStore>(database, options)),
      measurer_(std::make_shared<Measurer>(*store_, options)) {}

MeasuredCosts::MeasuredCosts(const MeasuredCosts& costs, Missing missing)
    : options_(costs.options_),
      store_(costs.store_),
      measurer_(costs.measurer_),
      missing_(missing) {}

Status MeasuredCosts::frozen_miss(const std::string& text, const Target& target) {
  return error(ErrorCode::kFrozenCosts, "no measurement of {} on {}", text.substr(0, 200),
               target.to_string());
}

Result<std::vector<TargetCosts>> MeasuredCosts::function_costs(const Function& function,
                                                               const std::vector<Target>& targets,
                                                               RoundingLimit rounding) {
  return std::move(TRY(function_costs({{function, targets}}, rounding)).at(0));
}

Result<std::optional<TargetCosts>> MeasuredCosts::without_asking(const Function& function,
                                                                 const CostKey& key) {
  if (tensor_program::is_local(function)) return std::optional(TRY(listed_here(function, key)));
  if (std::optional<TargetCosts> known = store_->find_measured(key, &function)) {
    store_->bounds.learn(function, key.text, *known);
    ++store_->counts.cached;
    return known;
  }
  if (!is_frozen()) return std::optional<TargetCosts>();
  // The host stands in for others all the same.
  if (!is_host(key.target)) return frozen_miss(key.text, key.target);
  return std::optional(TRY(listed_here(function, key)));
}

Result<std::vector<std::vector<TargetCosts>>> MeasuredCosts::function_costs(
    const std::vector<FunctionQuestion>& questions, RoundingLimit rounding) {
  struct Asked {
    const Function* function;
    std::vector<CostKey> keys;
    std::vector<TargetCosts*> answers;
  };
  std::vector<std::vector<TargetCosts>> result(questions.size());
  std::vector<MeasureTask> tasks;
  std::vector<Asked> asked;  // by each task
  for (size_t q = 0; q < questions.size(); ++q) {
    const auto& [function, targets] = questions[q];
    TimeRequest request;
    request.text = canonical_text(function);
    request.bytes = function_bytes(function);
    result[q].resize(targets.size());
    Asked unknown{&function, {}, {}};
    std::vector<std::string> names;
    for (size_t i = 0; i < targets.size(); ++i) {
      CostKey key{request.text, targets[i], rounding};
      if (std::optional<TargetCosts> known = TRY(without_asking(function, key))) {
        result[q][i] = std::move(*known);
        continue;
      }
      names.push_back(targets[i].to_string());
      if (const auto searched = searched_schedules(request.text, targets[i]);
          searched && rounding != RoundingLimit::kAny)
        for (const MeasuredVariant& row : searched->variants)
          request.named[names.back()].push_back(row.variant);
      unknown.keys.push_back(std::move(key));
      unknown.answers.push_back(&result[q][i]);
    }
    if (names.empty()) continue;
    tasks.push_back(measurer_->task_of(std::move(request), std::move(names)));
    tasks.back().options.rounding = rounding;
    asked.push_back(std::move(unknown));
  }
  const Stopwatch watch;
  std::vector<Measurer::Answer> answers = TRY(measurer_->ask_together(tasks));
  const double seconds = watch.seconds() / static_cast<double>(std::max<size_t>(1, tasks.size()));
  for (size_t m = 0; m < tasks.size(); ++m) {
    const auto& [function, keys, places] = asked[m];
    for (size_t i = 0; i < keys.size(); ++i) {
      TargetCosts& entry = *places[i];
      if (!answers[m]) {
        entry = TRY(not_measured(*function, keys[i]));
        continue;
      }
      entry = std::move((*answers[m])[i]);
      entry.seconds = seconds / static_cast<double>(keys.size());
      ++store_->counts.measured;
      store_->counts.disturbed += entry.conditions.disturbed;
      store_->learn_usual(entry.conditions);
      store_->mark_measured(keys[i]);
    }
  }
  if (!tasks.empty())
    store_->together([&] {
      for (size_t m = 0; m < tasks.size(); ++m)
        for (size_t i = 0; answers[m] && i < asked[m].keys.size(); ++i)
          store_->put_measured(asked[m].keys[i], *asked[m].function, *asked[m].answers[i]);
    });
  for (const std::vector<TargetCosts>& entries : result)
    for (const TargetCosts& entry : entries) store_->counts.add_invalid(entry);
  return result;
}

Result<TargetCosts> MeasuredCosts::not_measured(const Function& function,
                                                const CostKey& key) const {
  if (is_host(key.target)) return listed_here(function, {key.text, key.target});
  TargetCosts entry;
  entry.target = key.target.to_string();
  entry.refusal = kNotMeasured;
  return entry;
}

std::optional<double> MeasuredCosts::given(const Function& function, const std::string& target,
                                           const Variant& variant) const {
  if (options_.model == nullptr) return std::nullopt;
  auto [text, is_new] = texts_.try_emplace(function);
  if (is_new) text->second = canonical_text(function);
  return checked(options_.model->kernel_seconds({text->second, target, variant.to_string()}));
}

std::optional<double> MeasuredCosts::given(const TensorType& type, const Encoding& from,
                                           const Encoding& to) const {
  if (options_.model == nullptr) return std::nullopt;
  return checked(options_.model->conversion_seconds(
      {type.shape, type.dtype, from.to_string(), to.to_string()}));
}

void MeasuredCosts::apply_given(const Function& function, TargetCosts& costs) const {
  for (MeasuredVariant& row : costs.variants) {
    if (measured(row.cost) == nullptr && !(row.tried && std::holds_alternative<Unknown>(row.cost)))
      continue;
    if (const auto seconds = given(function, costs.target, row.variant))
      row.cost = cost_of(*seconds);
  }
}

Result<std::vector<TargetCosts>> MeasuredCosts::kernel_costs(
    const std::vector<KernelQuestion>& questions) {
  // Targets of one function are rivals, and measured as such.
  std::vector<FunctionQuestion> functions;
  std::map<std::string, size_t> function_of;
  std::map<size_t, std::pair<size_t, size_t>> places;  // of questions: function, target
  std::vector<TargetCosts> answers(questions.size());
  for (size_t q = 0; q < questions.size(); ++q) {
    const auto& [function, target, used] = questions[q];
    const std::string name = target.to_string();
    if (given(function, name, used)) {
      answers[q] = TRY(tried_function(function, target, &used));
      continue;
    }
    if (estimates() && !is_known(function, target)) {
      // With what foreign rows say of it.
      const CostKey key{canonical_text(function), target};
      if (std::optional<TargetCosts> offer = store_->find_offer(key, &function, expects())) {
        answers[q] = std::move(*offer);
      } else {
        answers[q].target = name;
        answers[q].variants.push_back({used, Unknown{}});
      }
      missed_ = true;
      continue;
    }
    const auto [it, is_new] = function_of.try_emplace(canonical_text(function), functions.size());
    if (is_new) functions.push_back({function, {}});
    std::vector<Target>& targets = functions[it->second].targets;
    const auto found = std::find(targets.begin(), targets.end(), target);
    places[q] = {it->second, found - targets.begin()};
    if (found == targets.end()) targets.push_back(target);
  }
  const std::vector<std::vector<TargetCosts>> all = TRY(function_costs(functions));
  for (const auto& [q, place] : places) answers[q] = all[place.first][place.second];
  for (size_t q = 0; q < questions.size(); ++q) apply_given(questions[q].function, answers[q]);
  return answers;
}

double MeasuredCosts::kernel_estimate(const Function& function, const TargetCosts& costs,
                                      size_t variant) const {
  if (const auto seconds = given(function, costs.target, costs.variants[variant].variant))
    return *seconds;
  if (const double elsewhere = costs.variants[variant].elsewhere; elsewhere > 0) return elsewhere;
  const Result<Target> target = Target::parse(costs.target);
  if (!target || find_backend(target->kind) == nullptr || is_host(*target))
    return analytic_seconds(function);
  if (expects())
    if (const auto expected = store_->expected(function, *target, costs.variants[variant].variant))
      return *expected;
  return store_->bounds.least(function, *target);
}

Result<std::vector<std::optional<Cost>>> MeasuredCosts::add_blocks(
    const std::vector<KernelQuestion>& kernels) {
  std::vector<std::optional<Cost>> result(kernels.size());
  std::vector<MeasureTask> tasks;
  std::vector<size_t> asked;  // of each task: which of the kernels
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto& [function, target, variant] = kernels[k];
    CostKey key = key_of(kernels[k]);
    if (!store_->measured_now(key)) continue;
    const std::string name = target.to_string();
    tasks.push_back(measurer_->task_of(
        TimeRequest{{std::move(key.text), {{name, {variant}}}, true}, function_bytes(function)},
        {name}));
    tasks.back().options.rounding = key.rounding;
    asked.push_back(k);
  }
  std::vector<Measurer::Answer> answers = TRY(measurer_->ask_together(std::move(tasks)));
  for (size_t i = 0; i < answers.size(); ++i)
    if (const KernelQuestion& kernel = kernels[asked[i]]; answers[i])
      result[asked[i]] = add_to_row(kernel, key_of(kernel), std::move(answers[i]->at(0)));
  return result;
}

std::optional<Cost> MeasuredCosts::add_to_row(const KernelQuestion& kernel, const CostKey& key,
                                              TargetCosts answer) {
  std::optional<TargetCosts> known = store_->find("function", key, &kernel.function);
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
  store_->put_measured(key, kernel.function, *known);
  return *cost;
}

Result<std::optional<TargetCosts>> MeasuredCosts::time_variants(
    const Function& function, const Target& target, const std::vector<Variant>& variants,
    Effort effort) {
  if (variants.empty()) return std::optional<TargetCosts>();
  const std::string name = target.to_string();
  MeasureTask task =
      measurer_->task_of(TimeRequest{{canonical_text(function), {{name, variants}}, true}}, {name});
  task.effort = effort;
  Measurer::Answer answer = TRY(measurer_->ask(std::move(task)));
  if (!answer) return std::optional<TargetCosts>();
  store_->learn_usual(answer->at(0).conditions);
  return std::optional(std::move(answer->at(0)));
}

std::optional<TargetCosts> MeasuredCosts::searched_schedules(const std::string& text,
                                                             const Target& target) {
  return store_->find(kSearched, {text, target});
}

Status MeasuredCosts::end_schedule_search(const Function& function, const Target& target,
                                          const std::optional<MeasuredVariant>& found) {
  const CostKey key{canonical_text(function), target};
  TargetCosts searched;
  searched.target = target.to_string();
  if (found) searched.variants.push_back(*found);
  store_->put(kSearched, key, searched);
  if (!found) return {};
  std::optional<TargetCosts> known = store_->find("function", key, &function);
  if (!known) return internal_error("a schedule was found for what was not measured");
  known->variants.push_back(*found);
  store_->put_measured(key, function, *known);
  return {};
}

double MeasuredCosts::conversion_estimate(const TensorType& type, const Encoding& from,
                                          const Encoding& to) const {
  if (const auto seconds = given(type, from, to)) return *seconds;
  if (expects())
    if (const auto expected = store_->expected_conversion(type, from, to)) return *expected;
  return least_conversion_seconds(type, from, to, options_.compile.threads);
}

std::optional<ConversionRow> MeasuredCosts::known_conversion(const TensorType& type,
                                                             const Encoding& from,
                                                             const Encoding& to) {
  if (given(type, from, to)) return std::nullopt;
  std::optional<ConversionRow> known =
      store_->find_conversion("conversion", CostKeys::conversion_text(type, from, to));
  store_->counts.cached += known.has_value();
  return known;
}

Result<ConversionRow> MeasuredCosts::conversion_cost(const TensorType& type, const Encoding& from,
                                                     const Encoding& to) {
  if (const std::optional<double> seconds = given(type, from, to)) {
    ConversionRow row = TRY(tried_conversion(type, from, to));
    if (!std::holds_alternative<Invalid>(row.cost)) row.cost = cost_of(*seconds);
    return row;
  }
  if (std::optional<ConversionRow> known = known_conversion(type, from, to)) return *known;
  if (estimates()) {
    missed_ = true;
    return ConversionRow{"", Unknown{}};
  }
  if (is_frozen())
    return error(ErrorCode::kFrozenCosts, "no measurement of the conversion {}",
                 CostKeys::conversion_text(type, from, to));
  return ask_for_conversion("conversion", type, from, to);
}

std::vector<std::string> MeasuredCosts::converters() const {
  std::vector<std::string> backends;
  const std::set<std::string>& named = options_.converters;
  for (Backend* backend : all_backends())
    if (named.empty() || backend->traits().is_host || named.contains(backend->name()))
      backends.push_back(backend->name());
  return backends;
}

// All backends are rivals.
Result<ConversionRow> MeasuredCosts::ask_for_conversion(const std::string& kind,
                                                        const TensorType& type,
                                                        const Encoding& from, const Encoding& to) {
  const std::string text = CostKeys::conversion_text(type, from, to);
  if (options_.machine != nullptr)
    return error(ErrorCode::kFrozenCosts, "no trial of the conversion {}", text);
  const bool timed = kind != "trial";
  const Measurer::Answer answer =
      TRY(measurer_->ask(measurer_->task_of(ConvertRequest{type, from, to, timed}, converters())));
  if (!answer) return ConversionRow{"", Invalid{kNotMeasured}};
  ++(timed ? store_->counts.measured : store_->counts.tried);
  ConversionRow best{"", Invalid{"no backend converts " + text}};
  double least = std::numeric_limits<double>::infinity();
  for (const TargetCosts& entry : *answer) {
    if (!entry.refusal.empty() && best.backend.empty()) best.cost = Invalid{entry.refusal};
    for (const MeasuredVariant& row : entry.variants) {
      const Measured* m = measured(row.cost);
      const double seconds = m != nullptr ? m->seconds() : 0;  // of the first that is right
      if (!(timed ? m != nullptr : row.tried) || seconds >= least) continue;
      least = seconds;
      best = {entry.target, row.cost};
    }
  }
  store_->put_conversion(kind, text, best, *answer);
  return best;
}

}  // namespace collage
