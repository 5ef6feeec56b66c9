// The protocol between the compiler and a measuring worker, as lines of JSON.
//
//   to the worker     [MeasureTask]: requests about functions, all of them timed together; or one
//                     about a conversion
//   from the worker   {"begin": subject}     what it is about to touch: the cause if it dies
//                     {"timing": [subject]}  it times these together; which one at the moment is
//                                            in the memory it shares with the compiler (worker.h)
//                     {"fault": text}        what a fatal access hit, just before it dies
//                     {"done": [TargetCosts]} or {"failed": Invalid}, once for each task, in order
//
// Before the first task both state their builds (build_identity.h).
// A subject is "target" or "target|variant".
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "base/json_fields.h"
#include "measure/cost.h"
#include "measure/effort.h"
#include "measure/probe.h"

namespace collage {

struct MeasuredVariant {
  Variant variant;
  Cost cost;
  bool repeatable = true;  // equal inputs gave equal bits
  bool tried = false;      // it was compiled, and computed right; the cost may be unknown
  double error = 0;        // of a lowered variant: root mean square, relative to the result's
  double elsewhere = 0;    // seconds that a foreign row (database.h) says; 0: none does
  // The key of failures and quarantine.
  std::string subject(const std::string& target) const {
    return target + "|" + variant.to_string();
  }
};

// What is known of one (function, target): its variants with their costs, or why the backend
// refused the function.
struct TargetCosts {
  std::string target;                            // text form
  std::string refusal;                           // not empty: no variants
  WorkerFailure failure = WorkerFailure::kNone;  // that led to the refusal
  std::vector<MeasuredVariant> variants;
  Effort effort = Effort::kDefault;
  double seconds = 0;  // that measuring took, all in all
  Conditions conditions;
};

// Returns whether some of it failed for lack of resources (fault.h): then it is not kept.
bool lacks_resources(const TargetCosts& costs);

// Returns the fastest of those that were measured and for which `counts(row)` holds, the first of
// equals; null if there is none.
template <typename Counts>
const MeasuredVariant* fastest_variant(const TargetCosts& costs, Counts&& counts) {
  const MeasuredVariant* fastest = nullptr;
  for (const MeasuredVariant& row : costs.variants) {
    const Measured* figure = measured(row.cost);
    if (figure == nullptr || !counts(row)) continue;
    if (fastest == nullptr || figure->seconds() < measured(fastest->cost)->seconds())
      fastest = &row;
  }
  return fastest;
}

// Requests about a function. Large constants of its text are there by shape alone.
struct FunctionRequest {
  std::string text;  // canonical
  // By target: variants outside the backend's list, as a schedule search finds them, to be tried
  // too, or alone.
  std::map<std::string, std::vector<Variant>> named = {};
  bool only_named = false;
};
// Lists the variants; compiles nothing.
struct ListRequest : FunctionRequest {};
// Tries the variants of each target in order until one is correct; times nothing.
struct TryFirstRequest : FunctionRequest {};
// Tries all variants, and times together those that are correct.
struct TimeRequest : FunctionRequest {
  double bytes = 0;  // of the function's tensors; the worker does not need to know
};
// A tensor's change of encoding: times every target's or, if nothing is timed, tries the targets
// until one is correct.
struct ConvertRequest {
  TensorType type;
  Encoding from, to;
  bool timed = true;
};

using Request = std::variant<TimeRequest, ListRequest, TryFirstRequest, ConvertRequest>;

struct MeasureTask {
  Request request;
  std::vector<std::string> targets;           // text form; for a conversion: backends' names
  std::map<std::string, Invalid> skip;        // subjects that killed a worker before, and how
  std::string only;                           // not empty: no variant but this subject is tried
  CompileOptions options;                     // RoundingLimit::kAny: of variants that need it alone
  CacheState cache = CacheState::kStreaming;  // what to time in
  Effort effort = Effort::kDefault;
  bool builds = false;   // kernels are compiled, for caches of code, and none runs
  CoreState usual = {};  // what is known of the cores in quiet moments (noise_gate.h)

  const FunctionRequest* function() const;  // null for a conversion
  bool times() const;                       // else variants are tried at most
  bool excludes(const std::string& subject) const {
    return skip.count(subject) != 0 || (!only.empty() && only != subject);
  }
};

// The text may come from another build or a damaged file: nothing throws, and an invalid value is
// an error, as is a time that is negative or longer than a year.
inline constexpr JsonFields::Range kSeconds{0, 3e7};
nlohmann::json to_json(const Variant& variant);
Result<Variant> variant_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Cost& cost);
Result<Cost> cost_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Invalid& invalid);
Result<Invalid> invalid_from_json(const nlohmann::json& json);
nlohmann::json to_json(const TargetCosts& costs);
Result<TargetCosts> target_costs_from_json(const nlohmann::json& json);
nlohmann::json to_json(const MeasureTask& task);
Result<MeasureTask> task_from_json(const nlohmann::json& json);

}  // namespace collage
