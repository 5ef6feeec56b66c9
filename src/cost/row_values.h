// The values in the cost database's rows: what each kind of row holds, and how it is written as
// JSON. A database may come from anybody and hold anything, so a value is decoded before it is
// used: one that is malformed or makes no sense is as if it was not there, after a warning.
//
//   kind          value
//   function      TargetCosts (task.h)
//   trial         TargetCosts, or ConversionRow
//   schedules     TargetCosts, of what a schedule search found; of no variants where it found none
//   conversion    ConversionRow
//   quarantine    Quarantine
//   machine       a number under the name that is the row's text: of CoreState; or MachineSpeed; or
//                 Machine (machine.h)
//   cover         TimingRow
//   check         CheckRow
//   in_situ       InSituRow
//   budgets       BudgetList
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "cost/database.h"
#include "measure/machine_speed.h"
#include "measure/task.h"

namespace collage {

// The cheapest way to change a tensor's encoding: the backend that does it; empty when none can,
// and then the cost says why.
struct ConversionRow {
  std::string backend;
  Cost cost;
};

// Subjects that killed a worker, and how.
using Quarantine = std::map<std::string, Invalid>;

// One numbers' row of what is known of the cores: its text, where the number goes, and what it can
// be.
struct CoreFact {
  const char* name;
  double CoreState::*value;
  JsonFields::Range range;
};
inline constexpr CoreFact kCoreFacts[] = {
    {"contention", &CoreState::contention, {1e-2, 1e2}},
    {"core_to_core", &CoreState::core_to_core, {1e-10, 1}},
    {"memory", &CoreState::memory, {1e-14, 1e-6}},
};

// A cover that was timed whole.
struct TimingRow {
  std::string source;         // identifies the model's structure
  double kernel_seconds = 0;  // of its kernels and conversions, each measured alone
  size_t switches = 0;        // between thread pools
  double predicted = 0;       // seconds, before it first ran; 0: not known
  Measured measured;          // end to end
  size_t bytes = 0;           // that its program keeps; 0: not known
};

// The text of the row with what the machine's speed was probed to be.
inline constexpr const char* kSpeedName = "speed";

inline constexpr double kMostError = 1e30;  // beyond it a row holds a failure instead

// What running a cover on one group of inputs showed (choose/cover_checks.h).
struct CheckRow {
  double error = 0;      // the largest of any output, as a part of the largest value like it
  bool excused = false;  // beyond the tolerance, but no more than the reference itself moves
  uint32_t seed = 0;     // of the seeded inputs
  std::string failure;   // why it is wrong whatever the user allows; empty where it is right
  std::map<std::string, std::string> silent;  // outputs of which nothing is proved: why
  std::vector<std::string> culprits;          // what of a wrong cover is to blame
  bool all_ranges = false;                    // seeded inputs of every range were tried
};

struct InSituRow {
  std::string source;  // identifies the model's structure
  double ratio = 1;    // of its kernels in situ, as a multiple of what they take in isolation
};

// The kernels of the program that was chosen for a model.
struct PlanRow {
  struct Kernel {
    std::vector<size_t> nodes;  // of the model's graph
    std::string target, variant;
  };
  std::vector<Kernel> kernels;
  bool complete = false;  // nothing was left to measure
};

// By what errors of a function's lowered kernels grow until the outputs, by the function's name.
using AmplificationTable = std::map<std::string, double>;
// What covers were estimated to err by at most when one was found whose outputs err by less than a
// user allows, with what was known of amplifications then (choose/precision.h).
struct ErrorBudget {
  double error = kMostError;  // no limit
  AmplificationTable amplifications;
};
using BudgetList = std::vector<ErrorBudget>;

nlohmann::json to_json(const ConversionRow& value);
nlohmann::json to_json(const Quarantine& value);
nlohmann::json to_json(const CoreFact& fact, double value);
nlohmann::json to_json(const MachineSpeed& value);
nlohmann::json to_json(const TimingRow& value);
nlohmann::json to_json(const CheckRow& value);
nlohmann::json to_json(const InSituRow& value);
nlohmann::json to_json(const BudgetList& value);
nlohmann::json to_json(const PlanRow& value);
Result<ConversionRow> conversion_row_from_json(const nlohmann::json& json);
Result<Quarantine> quarantine_from_json(const nlohmann::json& json);
Result<double> core_fact_from_json(const CoreFact& fact, const nlohmann::json& json);
Result<MachineSpeed> speed_from_json(const nlohmann::json& json);
Result<TimingRow> cover_row_from_json(const nlohmann::json& json);
Result<CheckRow> check_row_from_json(const nlohmann::json& json);
Result<InSituRow> in_situ_row_from_json(const nlohmann::json& json);
Result<BudgetList> budget_list_from_json(const nlohmann::json& json);
Result<PlanRow> plan_row_from_json(const nlohmann::json& json);

// Whether a row is of a function on a target: its value is a TargetCosts then. Of trials there are
// those of conversions too.
bool is_of_function(const CostRow& row, const nlohmann::json& value);
// What is wrong with the row's value, by itself and beside its text and context.
Status check_row_value(const CostRow& row);

// The decoded value of a row: none where there is no row, or where `decode` (json to Result) finds
// it malformed, of which the database warns once. The context as in CostDatabase::find.
template <typename Decode>
auto find_value(CostDatabase& database, const std::string& kind, const std::string& key,
                Decode&& decode, const std::string& context = "")
    -> std::optional<std::decay_t<decltype(*decode(nlohmann::json()))>> {
  const std::optional<std::string> text = database.find(kind, key, context);
  if (!text) return std::nullopt;
  auto value = decode(parse_json(*text));
  if (value.ok()) return std::move(value).value();
  database.warn_of_row(kind, key, value.status());
  return std::nullopt;
}

// Those of all rows of that kind with that context; malformed ones are left out with a warning.
template <typename Decode>
auto all_values(CostDatabase& database, const std::string& kind, const std::string& context,
                Decode&& decode) -> std::vector<std::decay_t<decltype(*decode(nlohmann::json()))>> {
  std::vector<std::decay_t<decltype(*decode(nlohmann::json()))>> values;
  for (const auto& [key, text] : database.values(kind, context)) {
    auto value = decode(parse_json(text));
    if (value.ok()) {
      values.push_back(std::move(value).value());
    } else {
      database.warn_of_row(kind, key, value.status());
    }
  }
  return values;
}

}  // namespace collage
