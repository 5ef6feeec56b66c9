// What travels between the compiler and a measuring worker, as lines of JSON.
//
//   to the worker     MeasureTask, one line: a function (canonical text, large constants by shape
//   only) and the targets to try, or
//                     a tensor type and two encodings to convert between
//   from the worker   WorkerEvents, a line each: which target and variant it is about to touch (so
//   that a crash can be blamed),
//                     results, and "done"
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cost/cost.h"

namespace collage {

struct MeasuredVariant {
  Variant variant;
  Cost cost;
};

// What is known of one (function, target): its variants with their costs, or why the backend
// refused the function.
struct TargetCosts {
  std::string target;   // text form
  std::string refusal;  // not empty: no variants
  std::vector<MeasuredVariant> variants;
};

struct MeasureTask {
  std::string function_text;         // empty for a conversion
  std::vector<std::string> targets;  // text form; for a conversion: backends' names
  std::set<std::string> skip;        // "target" or "target|variant" that killed a worker before
  // Conversion only.
  TensorType type;
  Encoding from, to;
  CompileOptions options;
  bool is_conversion() const { return function_text.empty(); }
};

nlohmann::json to_json(const Encoding& encoding);
Result<Encoding> encoding_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Variant& variant);
Result<Variant> variant_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Cost& cost);
Result<Cost> cost_from_json(const nlohmann::json& json);
nlohmann::json to_json(const TargetCosts& costs);
Result<TargetCosts> target_costs_from_json(const nlohmann::json& json);
nlohmann::json to_json(const MeasureTask& task);
Result<MeasureTask> task_from_json(const nlohmann::json& json);
// A line from another process or from disk: null when it is not JSON.
nlohmann::json parse_json(const std::string& text);

}  // namespace collage
