#include "cost/task.h"

namespace collage {

using nlohmann::json;

namespace {

// Runs `read` and turns the JSON library's exceptions (a missing field, a wrong kind) into a
// Status.
template <typename F>
auto guarded(const char* what, F&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const json::exception& e) {
    return internal_error("malformed {}: {}", what, e.what());
  }
}

template <typename T, typename F>
Result<std::vector<T>> list_from(const json& array, F&& one) {
  std::vector<T> result;
  for (const json& entry : array) result.push_back(TRY(one(entry)));
  return result;
}

}  // namespace

json to_json(const Encoding& e) {
  json result = {{"dtype", dtype_name(e.dtype)}, {"layout", e.layout.to_string()}};
  if (!(e.device == VirtualDevice{}))
    result["device"] = {e.device.device, e.device.id, e.device.memory_scope};
  return result;
}

Result<Encoding> encoding_from_json(const json& j) {
  return guarded("encoding", [&]() -> Result<Encoding> {
    Encoding e;
    e.dtype = TRY(parse_dtype(j.at("dtype").get<std::string>()));
    e.layout = TRY(Layout::parse(j.at("layout").get<std::string>()));
    if (j.contains("device")) {
      const json& d = j.at("device");
      e.device = {d.at(0).get<std::string>(), d.at(1).get<int>(), d.at(2).get<std::string>()};
    }
    return e;
  });
}

json to_json(const Variant& v) {
  json inputs = json::array(), outputs = json::array();
  for (const Encoding& e : v.inputs) inputs.push_back(to_json(e));
  for (const Encoding& e : v.outputs) outputs.push_back(to_json(e));
  json result = {
      {"name", v.name}, {"inputs", inputs}, {"outputs", outputs}, {"relaxed", v.relaxed}};
  if (v.lowered) result["lowered"] = true;
  return result;
}

Result<Variant> variant_from_json(const json& j) {
  return guarded("variant", [&]() -> Result<Variant> {
    Variant v;
    v.name = j.at("name").get<std::string>();
    v.inputs = TRY(list_from<Encoding>(j.at("inputs"), encoding_from_json));
    v.relaxed = j.value("relaxed", false);
    v.lowered = j.value("lowered", false);
    v.outputs = TRY(list_from<Encoding>(j.at("outputs"), encoding_from_json));
    return v;
  });
}

json to_json(const Cost& cost) {
  if (const Measured* m = measured(cost))
    return {{"median", m->median}, {"p10", m->p10}, {"p90", m->p90}, {"samples", m->samples}};
  if (const auto* invalid = std::get_if<Invalid>(&cost)) return {{"invalid", invalid->reason}};
  return json::object();
}

Result<Cost> cost_from_json(const json& j) {
  return guarded("cost", [&]() -> Result<Cost> {
    if (j.contains("invalid")) return Cost(Invalid{j.at("invalid").get<std::string>()});
    if (!j.contains("median")) return Cost(Unknown{});
    Measured m{j.at("median").get<double>(), j.at("p10").get<double>(), j.at("p90").get<double>(),
               j.at("samples").get<int>()};
    return Cost(m);
  });
}

json to_json(const CoreState& state) {
  return {{"crowding", state.crowding}, {"handover", state.handover}};
}

CoreState core_state_from_json(const json& j) {
  return {j.value("crowding", 0.0), j.value("handover", 0.0)};
}

json to_json(const TargetCosts& costs) {
  json variants = json::array();
  for (const MeasuredVariant& row : costs.variants) {
    variants.push_back({{"variant", to_json(row.variant)}, {"cost", to_json(row.cost)}});
    if (!row.repeatable) variants.back()["repeatable"] = false;
    if (row.tried && std::holds_alternative<Unknown>(row.cost)) variants.back()["tried"] = true;
    if (row.error > 0) variants.back()["error"] = row.error;
  }
  json result = {{"target", costs.target}, {"variants", variants}};
  result["effort"] = effort_name(costs.effort);
  result["seconds"] = costs.seconds;
  const Conditions& conditions = costs.conditions;
  result["conditions"] = {{"compute", conditions.compute},
                          {"bandwidth", conditions.bandwidth},
                          {"other_load", conditions.other_load},
                          {"usual", to_json(conditions.usual)}};
  if (conditions.disturbed) result["conditions"]["disturbed"] = true;
  if (!costs.refusal.empty()) result["refusal"] = costs.refusal;
  return result;
}

Result<TargetCosts> target_costs_from_json(const json& j) {
  return guarded("costs", [&]() -> Result<TargetCosts> {
    TargetCosts costs;
    costs.target = j.at("target").get<std::string>();
    costs.refusal = j.value("refusal", "");
    costs.effort = TRY(parse_effort(j.value("effort", "default")));
    costs.seconds = j.value("seconds", 0.0);
    if (j.contains("conditions")) {
      const json& c = j.at("conditions");
      costs.conditions = {c.value("compute", 0.0), c.value("bandwidth", 0.0),
                          c.value("other_load", 0.0), c.value("disturbed", false),
                          core_state_from_json(c.value("usual", json::object()))};
    }
    costs.variants = TRY(list_from<MeasuredVariant>(
        j.at("variants"), [](const json& entry) -> Result<MeasuredVariant> {
          return MeasuredVariant{TRY(variant_from_json(entry.at("variant"))),
                                 TRY(cost_from_json(entry.at("cost"))),
                                 entry.value("repeatable", true), entry.value("tried", false),
                                 entry.value("error", 0.0)};
        }));
    return costs;
  });
}

json to_json(const MeasureTask& task) {
  json result = {{"function", task.function_text},
                 {"targets", task.targets},
                 {"skip", task.skip},
                 {"only", task.only},
                 {"until_right", task.until_right},
                 {"lowered", task.lowered},
                 {"effort", effort_name(task.effort)},
                 {"threads", task.options.threads},
                 {"cache", task.options.cache_folder},
                 {"caches", static_cast<int>(task.cache)},
                 {"usual", to_json(task.usual)},
                 {"patience", task.patience}};
  if (task.is_conversion()) {
    result["shape"] = task.type.shape;
    result["dtype"] = dtype_name(task.type.dtype);
    result["from"] = to_json(task.from);
    result["to"] = to_json(task.to);
  }
  return result;
}

Result<MeasureTask> task_from_json(const json& j) {
  return guarded("task", [&]() -> Result<MeasureTask> {
    MeasureTask task;
    task.function_text = j.at("function").get<std::string>();
    task.targets = j.at("targets").get<std::vector<std::string>>();
    task.skip = j.at("skip").get<std::map<std::string, std::string>>();
    task.only = j.at("only").get<std::string>();
    task.until_right = j.at("until_right").get<bool>();
    task.lowered = j.at("lowered").get<bool>();
    task.effort = TRY(parse_effort(j.at("effort").get<std::string>()));
    task.options.threads = j.at("threads").get<int>();
    task.options.cache_folder = j.at("cache").get<std::string>();
    task.cache = static_cast<CacheState>(j.at("caches").get<int>());
    task.usual = core_state_from_json(j.at("usual"));
    task.patience = j.at("patience").get<double>();
    if (task.is_conversion()) {
      task.type.shape = j.at("shape").get<Shape>();
      task.type.dtype = TRY(parse_dtype(j.at("dtype").get<std::string>()));
      task.from = TRY(encoding_from_json(j.at("from")));
      task.to = TRY(encoding_from_json(j.at("to")));
    }
    return task;
  });
}

}  // namespace collage
