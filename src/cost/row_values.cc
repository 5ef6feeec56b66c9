#include "cost/row_values.h"

#include <algorithm>

#include "cost/machine.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr JsonFields::Range kRatio{1e-3, 1e3};
constexpr JsonFields::Range kError{0, kMostError};  // as a part of the largest value
constexpr int64_t kMostSwitches = 1'000'000;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of a function on a target: the context's first line is the target.
Status check_target(const CostRow& row, const std::string& target) {
  if (row.context.empty() || target == first_line(row.context)) return {};
  return internal_error("it is of the target '{}', its key of '{}'", target,
                        first_line(row.context));
}

Status check_source(const CostRow& row, const std::string& source) {
  if (source == row.text) return {};
  return internal_error("'source' is not the row's text");
}

Status check_core_fact(const CostRow& row, const json& value) {
  if (row.text == kSpeedName) return speed_from_json(value).status();
  for (const CoreFact& fact : kCoreFacts)
    if (row.text == fact.name) return core_fact_from_json(fact, value).status();
  return internal_error("nothing is known by the name '{}'", row.text);
}

}  // namespace

json to_json(const ConversionRow& value) {
  return {{"backend", value.backend}, {"cost", to_json(value.cost)}};
}

Result<ConversionRow> conversion_row_from_json(const json& j) {
  const JsonFields fields(j);
  return ConversionRow{TRY(fields.text("backend")),
                       TRY(cost_from_json(*TRY(fields.object("cost"))))};
}

json to_json(const Quarantine& value) {
  json result = json::object();
  for (const auto& [subject, how] : value) result[subject] = to_json(how);
  return result;
}

Result<Quarantine> quarantine_from_json(const json& j) {
  if (!j.is_object()) return internal_error("is no JSON object");
  Quarantine result;
  for (const auto& [subject, how] : j.items()) {
    // Builds that did not tell deaths apart wrote the reason alone.
    result[subject] = how.is_string() ? Invalid{how.get<std::string>(), WorkerFailure::kCrash}
                                      : TRY(invalid_from_json(how));
  }
  return result;
}

json to_json(const CoreFact& fact, double value) { return {{fact.name, value}}; }

Result<double> core_fact_from_json(const CoreFact& fact, const json& j) {
  return JsonFields(j).number(fact.name, fact.range);
}

json to_json(const MachineSpeed& value) {
  return {{"float32", value.float32}, {"memory", value.memory}};
}

Result<MachineSpeed> speed_from_json(const json& j) {
  constexpr JsonFields::Range kRate{1, 1e18};
  const JsonFields fields(j);
  return MachineSpeed{TRY(fields.number("float32", kRate)), TRY(fields.number("memory", kRate))};
}

json to_json(const TimingRow& value) {
  return {{"source", value.source},
          {"parts", {{"seconds", value.kernel_seconds}, {"switches", value.switches}}},
          {"predicted", value.predicted},
          {"bytes", value.bytes},
          {"cost", to_json(Cost(value.measured))}};
}

Result<TimingRow> cover_row_from_json(const json& j) {
  const JsonFields fields(j);
  TimingRow row;
  row.source = TRY(fields.text("source"));
  const JsonFields parts(*TRY(fields.object("parts")));
  row.kernel_seconds = TRY(parts.number("seconds", kSeconds));
  row.switches = static_cast<size_t>(TRY(parts.integer("switches", 0, kMostSwitches)));
  row.predicted = TRY(fields.number("predicted", kSeconds, 0.0));
  row.bytes = static_cast<size_t>(TRY(fields.integer("bytes", 0, int64_t{1} << 60, 0)));
  const Cost cost = TRY(cost_from_json(*TRY(fields.object("cost"))));
  if (measured(cost) == nullptr || measured(cost)->median <= 0)
    return internal_error("'cost' is no time");
  row.measured = *measured(cost);
  return row;
}

json to_json(const CheckRow& value) {
  return {{"error", value.error},          {"excused", value.excused}, {"seed", value.seed},
          {"failure", value.failure},      {"silent", value.silent},   {"culprits", value.culprits},
          {"all_ranges", value.all_ranges}};
}

Result<CheckRow> check_row_from_json(const json& j) {
  const JsonFields fields(j);
  CheckRow row;
  row.error = TRY(fields.number("error", kError));
  row.excused = TRY(fields.flag("excused", false));
  row.seed = static_cast<uint32_t>(
      TRY(fields.integer("seed", 0, std::numeric_limits<uint32_t>::max(), 0)));
  row.failure = TRY(fields.text("failure"));
  row.all_ranges = TRY(fields.flag("all_ranges"));
  for (const auto& [output, reason] : TRY(fields.object("silent"))->items()) {
    if (!reason.is_string()) return internal_error("'silent' holds what is no text");
    row.silent[output] = reason.get<std::string>();
  }
  for (const json& culprit : *TRY(fields.array("culprits"))) {
    if (!culprit.is_string()) return internal_error("'culprits' holds what is no text");
    row.culprits.push_back(culprit.get<std::string>());
  }
  return row;
}

json to_json(const InSituRow& value) { return {{"source", value.source}, {"ratio", value.ratio}}; }

Result<InSituRow> in_situ_row_from_json(const json& j) {
  const JsonFields fields(j);
  return InSituRow{TRY(fields.text("source")), TRY(fields.number("ratio", kRatio))};
}

json to_json(const BudgetList& value) {
  json list = json::array();
  for (const ErrorBudget& budget : value)
    list.push_back({{"error", budget.error}, {"amplifications", budget.amplifications}});
  return {{"budgets", list}};
}

json to_json(const PlanRow& value) {
  json kernels = json::array();
  for (const PlanRow::Kernel& kernel : value.kernels)
    kernels.push_back(
        {{"nodes", kernel.nodes}, {"target", kernel.target}, {"variant", kernel.variant}});
  return {{"kernels", std::move(kernels)}, {"complete", value.complete}};
}

Result<PlanRow> plan_row_from_json(const json& j) {
  constexpr size_t kMostNodes = size_t{1} << 24;
  PlanRow row;
  const JsonFields fields(j);
  row.complete = TRY(fields.flag("complete"));
  for (const json& entry : *TRY(fields.array("kernels"))) {
    const JsonFields kernel(entry);
    PlanRow::Kernel& one = row.kernels.emplace_back();
    one.target = TRY(kernel.text("target"));
    one.variant = TRY(kernel.text("variant"));
    for (const json& node : *TRY(kernel.array("nodes"))) {
      if (!node.is_number_unsigned() || node.get<size_t>() >= kMostNodes)
        return bad_model("a node that is no number of one");
      one.nodes.push_back(node.get<size_t>());
    }
  }
  return row;
}

Result<BudgetList> budget_list_from_json(const json& j) {
  BudgetList result;
  for (const json& entry : *TRY(JsonFields(j).array("budgets"))) {
    const JsonFields fields(entry);
    ErrorBudget budget;
    budget.error = TRY(fields.number("error", kError));
    const json& amplifications = *TRY(fields.object("amplifications"));
    for (const auto& [name, amplification] : amplifications.items())
      budget.amplifications[name] = TRY(JsonFields(amplifications).number(name.c_str(), kError));
    result.push_back(std::move(budget));
  }
  return result;
}

bool is_of_function(const CostRow& row, const json& value) {
  return row.kind == "function" || row.kind == "schedules" ||
         (row.kind == "trial" && JsonFields(value).has("variants"));
}

Status check_row_value(const CostRow& row) {
  const json value = parse_json(row.value);
  if (!value.is_object()) return internal_error("its value is no JSON object");
  if (is_of_function(row, value)) {
    const TargetCosts costs = TRY(target_costs_from_json(value));
    if (lacks_resources(costs))
      return internal_error("it states a lack of resources, which no row does");
    return check_target(row, costs.target);
  }
  if (row.kind == "conversion" || row.kind == "trial")
    return conversion_row_from_json(value).status();
  if (row.kind == "quarantine") return quarantine_from_json(value).status();
  if (is_of_machine(row)) {
    const Machine machine = TRY(machine_from_json(value));
    return machine.fingerprint == row.text && machine.kind() == row.context
               ? Status()
               : internal_error("its value is of another machine");
  }
  if (row.kind == "machine") return check_core_fact(row, value);
  if (row.kind == "cover") return cover_row_from_json(value).status();
  if (row.kind == "check") return check_row_from_json(value).status();
  if (row.kind == "in_situ") return check_source(row, TRY(in_situ_row_from_json(value)).source);
  if (row.kind == "plan") return plan_row_from_json(value).status();
  if (row.kind == "budgets") return budget_list_from_json(value).status();
  return internal_error("unknown kind");
}

}  // namespace collage
