#include "cost/cost_store.h"

#include <algorithm>
#include <utility>

#include "measure/fault.h"

namespace collage {

using nlohmann::json;

namespace {

// Whether what was measured can be what this function's kernels are: a row may hold anything.
Status check_fit(const TargetCosts& costs, const Function& function) {
  std::vector<TensorType> inputs;
  for (const Expr& param : function->params) inputs.push_back(param->tensor_type());
  const std::vector<TensorType> outputs = function->result_type().leaves();
  for (const MeasuredVariant& row : costs.variants)
    if (!std::holds_alternative<Invalid>(row.cost))
      TRY(check_fit(row.variant, inputs, outputs).with_context(row.variant.name));
  return {};
}

Result<TargetCosts> decoded(const json& value, const Target& target, const Function* function) {
  TargetCosts costs = TRY(target_costs_from_json(value));
  if (costs.target != target.to_string())
    return internal_error("it is of the target '{}', not '{}'", costs.target, target.to_string());
  if (function != nullptr) TRY(check_fit(costs, *function));
  return costs;
}

// As estimates: what was measured on a machine whose seconds are worth that many here.
TargetCosts measured_elsewhere(TargetCosts costs, double factor) {
  for (MeasuredVariant& row : costs.variants) {
    const Measured* figure = measured(row.cost);
    if (figure == nullptr) continue;
    row.elsewhere = factor * figure->seconds();
    row.cost = Unknown{};
  }
  return costs;
}

void keep_speed(CostDatabase& database, const CostKeys& keys, const MachineSpeed& speed) {
  // Without memory for it there is none, now.
  if (speed.float32 <= 0 || speed.memory <= 0) return;
  database.put("machine", CostDatabase::key_of(kSpeedName, keys.processor()), kSpeedName,
               json_text(to_json(speed)), keys.processor());
}

}  // namespace

void CostCounts::add_invalid(const TargetCosts& costs) {
  const auto count = [&](WorkerFailure failure) {
    crashed += failure == WorkerFailure::kCrash;
    silent += failure == WorkerFailure::kTimeout;
    out_of_memory += failure == WorkerFailure::kMemory;
    lacking += failure == WorkerFailure::kMachine;
  };
  count(costs.failure);
  for (const MeasuredVariant& row : costs.variants) {
    const auto* variant = std::get_if<Invalid>(&row.cost);
    if (variant == nullptr) continue;
    ++invalid;
    count(variant->failure);
  }
}

CostStore::CostStore(CostDatabase& database, CostOptions options)
    : bounds(options.compile.threads),
      database_(database),
      options_(std::move(options)),
      keys_(options_.compile.threads, options_.cache,
            options_.machine ? options_.machine->processor : processor_name()) {
  database_.believe_foreign(options_.frozen);
  for (const CoreFact& fact : kCoreFacts)
    usual_.*fact.value =
        find_value(
            database_, "machine", CostDatabase::key_of(fact.name, keys_.processor()),
            [&](const json& value) { return core_fact_from_json(fact, value); }, keys_.processor())
            .value_or(0);
}

void CostStore::learn_usual(const Conditions& conditions) {
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

double CostStore::seconds_per_measurement() {
  constexpr double kGuess = 0.4;
  if (!average_seconds_)
    average_seconds_ =
        database_
            .average("function", "/seconds", "/effort", std::string(effort_name(options_.effort)))
            .value_or(kGuess);
  return *average_seconds_;
}

bool CostStore::may_end(const Invalid& invalid) const {
  return invalid.failure == WorkerFailure::kTimeout &&
         invalid.waited < options_.limits.silence_seconds;
}

void CostStore::expect(const std::vector<CostKey>& keys) {
  std::vector<std::string> ids;
  for (const CostKey& key : keys) {
    ids.push_back(CostDatabase::key_of(key.text, context_of(key)));
    for (const Machine& other : others_of_kind())
      ids.push_back(CostDatabase::key_of(key.text, context_of(key, other)));
  }
  database_.expect({"function", "trial", "schedules"}, ids);
}

std::optional<TargetCosts> CostStore::find(const std::string& kind, const CostKey& key,
                                           const Function* function) {
  const auto decode = [&](const json& value) { return decoded(value, key.target, function); };
  std::optional<TargetCosts> known =
      find_value(database_, kind, CostDatabase::key_of(key.text, context_of(key)), decode);
  if (known && std::any_of(known->variants.begin(), known->variants.end(), [&](const auto& row) {
        const auto* invalid = std::get_if<Invalid>(&row.cost);
        return invalid != nullptr && may_end(*invalid);
      }))
    return std::nullopt;
  return known;
}

std::optional<TargetCosts> CostStore::find_measured(const CostKey& key, const Function* function,
                                                    bool any_care) {
  std::optional<TargetCosts> known = find("function", key, function);
  if (!known || any_care || options_.frozen) return known;
  // Care is for what was timed.
  const bool timed = std::any_of(known->variants.begin(), known->variants.end(),
                                 [](const MeasuredVariant& v) { return measured(v.cost); });
  const bool careless =
      known->effort < options_.effort ||
      (options_.effort == Effort::kMax && known->conditions.disturbed && !measured_now(key));
  return timed && careless ? std::nullopt : std::move(known);
}

std::optional<TargetCosts> CostStore::find_foreign(const CostKey& key, const Function* function) {
  const std::string id = CostDatabase::key_of(key.text, context_of(key));
  for (const char* kind : {"function", "trial"}) {
    const std::optional<std::string> value = database_.find_foreign(kind, id);
    if (!value) continue;
    Result<TargetCosts> hints = decoded(parse_json(*value), key.target, function);
    if (hints) return measured_elsewhere(std::move(*hints), 1);
    database_.warn_of_row(kind, id, hints.status());
  }
  return std::nullopt;
}

const std::vector<Machine>& CostStore::others_of_kind() {
  if (others_of_kind_) return *others_of_kind_;
  others_of_kind_.emplace();
  // Where nothing may be measured, what others measured is not known here.
  if (options_.frozen || !database_.on_disk()) return *others_of_kind_;
  std::vector<Machine> all = machines_of(database_, kind_here(options_.compile.threads));
  std::erase_if(all, [here = processor_name()](const Machine& other) {
    return other.processor == here || other.speed.float32 <= 0;
  });
  for (Machine& other : all)
    if (speed().float32 > 0) {
      other.seconds_factor = other.speed.float32 / speed().float32;
      others_of_kind_->push_back(std::move(other));
    }
  return *others_of_kind_;
}

std::optional<TargetCosts> CostStore::find_of_kind(const CostKey& key, const Function* function) {
  for (const Machine& other : others_of_kind()) {
    const std::string id = CostDatabase::key_of(key.text, context_of(key, other));
    std::optional<std::string> value = database_.find("function", id);
    if (!value) value = database_.find_foreign("function", id);
    if (!value) continue;
    Result<TargetCosts> hints = decoded(parse_json(*value), key.target, function);
    if (hints) return measured_elsewhere(std::move(*hints), other.seconds_factor);
    database_.warn_of_row("function", id, hints.status());
  }
  return std::nullopt;
}

std::optional<TargetCosts> CostStore::find_hints(const CostKey& key, const Function* function) {
  std::optional<TargetCosts> hints = find_foreign(key, function);
  return hints ? hints : find_of_kind(key, function);
}

void CostStore::introduce_here() {
  if (std::exchange(is_introduced_, true) || !database_.on_disk()) return;
  Machine here = this_machine(options_.compile.threads);
  if (options_.probes) {
    // Other load makes a probe slower than the machine is, never faster.
    const MachineSpeed probed = probe_machine(options_.compile.threads);
    if (probed.float32 > 1.02 * speed().float32) {
      speed_ = probed;
      keep_speed(database_, keys_, probed);
    }
    here.speed = speed();
  }
  introduce(database_, here);
}

std::optional<TargetCosts> CostStore::find_shipped(const CostKey& key, const Function* function) {
  if (key.rounding == RoundingLimit::kAny) return std::nullopt;
  std::optional<TargetCosts> known =
      shipped() != nullptr ? shipped()->kernel(key.text, key.target, options_.cache) : std::nullopt;
  if (known && function != nullptr && !check_fit(*known, *function).ok()) return std::nullopt;
  return known;
}

const ShippedCosts* CostStore::shipped() {
  // Where nothing may be measured, what is not in the database is not known.
  if (!shipped_)
    shipped_ = options_.frozen
                   ? nullptr
                   : ShippedCosts::find(options_.shipped, processor_name(),
                                        options_.compile.threads, [this] { return speed(); });
  return shipped_->get();
}

const MachineSpeed& CostStore::speed() {
  if (speed_) return *speed_;
  const std::string id = CostDatabase::key_of(kSpeedName, keys_.processor());
  speed_ = find_value(database_, "machine", id, speed_from_json, keys_.processor());
  if (!speed_) {
    speed_ = probe_machine(options_.compile.threads);
    keep_speed(database_, keys_, *speed_);
  }
  return *speed_;
}

std::optional<double> CostStore::expected(const Function& function, const Target& target,
                                          const Variant& variant) {
  if (shipped() == nullptr) return std::nullopt;
  return shipped()->expected(target.to_string(), algorithm_of(variant),
                             work_of(function, variant, options_.cache),
                             [this] { return speed(); });
}

std::optional<double> CostStore::expected_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to) {
  if (shipped() == nullptr) return std::nullopt;
  if (const std::optional<double> seconds =
          shipped()->conversion(CostKeys::conversion_text(type, from, to), options_.cache))
    return seconds;
  return shipped()->expected(kConversions, "", work_of(type, from, to), [this] { return speed(); });
}

std::optional<TargetCosts> CostStore::find_offer(const CostKey& key, const Function* function,
                                                 bool takes_shipped) {
  std::optional<TargetCosts> known = find_measured(key, function);
  if (known) return known;
  known = find("trial", key, function);
  if (known) add_hints(key, function, *known);
  if (!known) known = find_hints(key, function);
  if (!known && takes_shipped) known = find_shipped(key, function);
  if (known)
    for (MeasuredVariant& row : known->variants) row.tried = false;  // its cost is wanted
  return known;
}

void CostStore::add_hints(const CostKey& key, const Function* function, TargetCosts& offer) {
  std::optional<TargetCosts> hints = find_hints(key, function);
  if (!hints) hints = find_shipped(key, function);
  if (!hints) return;
  for (MeasuredVariant& row : offer.variants)
    for (const MeasuredVariant& hint : hints->variants)
      if (hint.variant == row.variant && std::holds_alternative<Unknown>(row.cost))
        row.elsewhere = hint.elsewhere;
}

void CostStore::put(const std::string& kind, const CostKey& key, const TargetCosts& costs) {
  const std::string context = context_of(key), id = CostDatabase::key_of(key.text, context),
                    value = json_text(to_json(costs));
  if (lacks_resources(costs)) return database_.remember(kind, id, value);
  database_.put(kind, id, key.text, value, context);
}

void CostStore::put_measured(const CostKey& key, const Function& function,
                             const TargetCosts& costs) {
  introduce_here();
  put("function", key, costs);
  bounds.learn(function, key.text, costs);
}

std::optional<ConversionRow> CostStore::find_conversion(const std::string& kind,
                                                        const std::string& text) {
  const auto decode = [](const json& value) -> Result<ConversionRow> {
    ConversionRow known = TRY(conversion_row_from_json(value));
    if (known.backend.empty() ? !std::holds_alternative<Invalid>(known.cost)
                              : find_backend(known.backend) == nullptr)
      return internal_error("there is no backend '{}'", known.backend);
    return known;
  };
  const std::string context = keys_.conversion_context(options_.converters);
  return find_value(database_, kind, CostDatabase::key_of(text, context), decode, context);
}

void CostStore::put_conversion(const std::string& kind, const std::string& text,
                               const ConversionRow& row, const std::vector<TargetCosts>& answers) {
  const std::string context = keys_.conversion_context(options_.converters),
                    id = CostDatabase::key_of(text, context), value = json_text(to_json(row));
  if (std::any_of(answers.begin(), answers.end(), lacks_resources))
    return database_.remember(kind, id, value);
  database_.put(kind, id, text, value, context);
}

void CostStore::skip_quarantined(MeasureTask& task, const std::string& text) {
  for (const std::string& target : task.targets) {
    const std::string id = CostDatabase::key_of(text, CostKeys::quarantine_context(target));
    if (auto known = find_value(database_, "quarantine", id, quarantine_from_json)) {
      std::erase_if(*known, [&](const auto& entry) { return may_end(entry.second); });
      task.skip.merge(*known);
    }
  }
}

void CostStore::put_in_quarantine(const std::string& text, const std::string& subject,
                                  const Invalid& how) {
  if (is_of_machine(how.failure)) return;
  const std::string context = CostKeys::quarantine_context(subject.substr(0, subject.find('|'))),
                    id = CostDatabase::key_of(text, context);
  Quarantine known =
      find_value(database_, "quarantine", id, quarantine_from_json).value_or(Quarantine());
  known[subject] = how;
  database_.put("quarantine", id, text, json_text(to_json(known)), context);
}

}  // namespace collage
