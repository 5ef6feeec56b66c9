#include "measure/task.h"

#include <algorithm>
#include <array>

#include "measure/blocks.h"
#include "measure/fault.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr JsonFields::Range kPart{0, 1e30};  // of another number

constexpr std::array<std::pair<WorkerFailure, const char*>, 4> kFailures = {
    {{WorkerFailure::kCrash, "crash"},
     {WorkerFailure::kTimeout, "silence"},
     {WorkerFailure::kMemory, "memory"},
     {WorkerFailure::kMachine, "machine"}}};

const char* failure_name(WorkerFailure failure) {
  for (const auto& [known, name] : kFailures)
    if (known == failure) return name;
  return "";
}

Result<WorkerFailure> failure_from(const JsonFields& fields) {
  const std::string text = TRY(fields.text("death", ""));
  if (text.empty()) return WorkerFailure::kNone;
  for (const auto& [known, name] : kFailures)
    if (text == name) return known;
  return internal_error("'death' is '{}'", text);
}

template <typename T, typename F>
Result<std::vector<T>> list_from(const json& array, F&& one) {
  std::vector<T> result;
  for (const json& entry : array) result.push_back(TRY(one(entry)));
  return result;
}

Result<std::string> text_from(const json& value) {
  if (!value.is_string()) return internal_error("an entry is no text");
  return value.get<std::string>();
}

Result<int64_t> extent_from(const json& value) {
  const json field = {{"extent", value}};
  return JsonFields(field).integer("extent", 0, std::numeric_limits<int64_t>::max());
}

}  // namespace

json to_json(const Variant& v) {
  json inputs = json::array(), outputs = json::array();
  for (const Encoding& e : v.inputs) inputs.push_back(to_json(e));
  for (const Encoding& e : v.outputs) outputs.push_back(to_json(e));
  json result = {{"name", v.name}, {"inputs", inputs}, {"outputs", outputs}};
  if (!v.schedule.empty()) result["schedule"] = v.schedule;
  if (!(v.work == Work()))
    result["work"] = {{"multiplications", v.work.multiplications},
                      {"unit", v.work.unit},
                      {"constants", v.work.constants},
                      {"in_place", v.work.in_place}};
  if (v.loses_nan) result["loses_nan"] = true;
  if (v.spreads_nan) result["spreads_nan"] = true;
  if (v.weights != kPlainWeights) result["weights"] = v.weights;
  if (!v.rounding.none())
    result["rounding"] = {{"sums", v.rounding.sums},
                          {"factors", v.rounding.factors},
                          {"fixed_point", v.rounding.fixed_point},
                          {"tensors", v.rounding.tensors}};
  return result;
}

namespace {

Result<Rounding> rounding_from_json(const json& j) {
  constexpr JsonFields::Range kTimes{1, 16}, kUnits{0, 0x1p-6};
  const JsonFields fields(j);
  Rounding rounding;
  rounding.sums = TRY(fields.number("sums", kTimes));
  rounding.factors = TRY(fields.number("factors", kUnits));
  rounding.fixed_point = TRY(fields.number("fixed_point", kUnits));
  rounding.tensors = TRY(fields.number("tensors", kUnits));
  return rounding;
}

Result<Work> work_from_json(const json& j) {
  constexpr JsonFields::Range kTimes{0x1p-10, 0x1p10}, kPart{0, 1};
  const JsonFields fields(j);
  Work work;
  work.multiplications = TRY(fields.number("multiplications", kTimes));
  work.unit = TRY(fields.text("unit"));
  work.constants = TRY(fields.number("constants", kPart));
  work.in_place = TRY(fields.flag("in_place"));
  return work;
}

}  // namespace

Result<Variant> variant_from_json(const json& j) {
  const JsonFields fields(j);
  Variant v;
  v.name = TRY(fields.text("name"));
  v.inputs = TRY(list_from<Encoding>(*TRY(fields.array("inputs")), encoding_from));
  v.schedule = TRY(fields.text("schedule", ""));
  if (fields.has("work")) v.work = TRY(work_from_json(*TRY(fields.object("work"))));
  v.loses_nan = TRY(fields.flag("loses_nan", false));
  v.spreads_nan = TRY(fields.flag("spreads_nan", false));
  v.weights = TRY(fields.text("weights", kPlainWeights));
  if (fields.has("rounding")) v.rounding = TRY(rounding_from_json(*TRY(fields.object("rounding"))));
  v.outputs = TRY(list_from<Encoding>(*TRY(fields.array("outputs")), encoding_from));
  return v;
}

json to_json(const Invalid& invalid) {
  json result = {{"invalid", invalid.reason}};
  if (invalid.failure != WorkerFailure::kNone) result["death"] = failure_name(invalid.failure);
  if (invalid.waited > 0) result["waited"] = invalid.waited;
  return result;
}

Result<Invalid> invalid_from_json(const json& j) {
  const JsonFields fields(j);
  return Invalid{TRY(fields.text("invalid")), TRY(failure_from(fields)),
                 TRY(fields.number("waited", kSeconds, 0.0))};
}

namespace {

json to_json(const Block& block) {
  json result = {
      {"median", block.median}, {"p10", block.p10}, {"p90", block.p90}, {"samples", block.samples}};
  if (block.disturbed) result["disturbed"] = true;
  return result;
}

Result<Block> block_from_json(const json& j) {
  const JsonFields fields(j);
  Block block;
  block.median = TRY(fields.number("median", kSeconds));
  block.p10 = TRY(fields.number("p10", kSeconds));
  block.p90 = TRY(fields.number("p90", kSeconds));
  block.samples = static_cast<int>(TRY(fields.integer("samples", 1, 100'000'000)));
  block.disturbed = TRY(fields.flag("disturbed", false));
  if (block.p10 > block.median || block.p90 < block.median)
    return internal_error("its median {} is not between {} and {}", block.median, block.p10,
                          block.p90);
  return block;
}

}  // namespace

json to_json(const Cost& cost) {
  if (const Measured* m = measured(cost)) {
    const std::vector<Block> blocks = blocks_of(*m);
    if (blocks.size() == 1) return to_json(blocks[0]);
    json list = json::array();
    for (const Block& block : blocks) list.push_back(to_json(block));
    return {{"blocks", list}};
  }
  if (const auto* invalid = std::get_if<Invalid>(&cost)) return to_json(*invalid);
  return json::object();
}

Result<Cost> cost_from_json(const json& j) {
  const JsonFields fields(j);
  if (!j.is_object()) return internal_error("a cost is no object");
  if (fields.has("invalid")) return Cost(TRY(invalid_from_json(j)));
  if (j.empty()) return Cost(Unknown{});
  std::vector<Block> blocks;
  if (fields.has("blocks")) {
    blocks = TRY(list_from<Block>(*TRY(fields.array("blocks")), block_from_json));
    if (blocks.empty() || blocks.size() > kMostKeptBlocks)
      return internal_error("a cost of {} blocks", blocks.size());
  } else {
    blocks.push_back(TRY(block_from_json(j)));
  }
  return Cost(of_blocks(std::move(blocks)));
}

json to_json(const CoreState& state) {
  return {{"contention", state.contention},
          {"core_to_core", state.core_to_core},
          {"memory", state.memory}};
}

Result<CoreState> core_state_from_json(const json& j) {
  const JsonFields fields(j);
  return CoreState{TRY(fields.number("contention", kPart, 0.0)),
                   TRY(fields.number("core_to_core", kSeconds, 0.0)),
                   TRY(fields.number("memory", kSeconds, 0.0))};
}

bool lacks_resources(const TargetCosts& costs) {
  // A target that was silent is in quarantine, which knows for how long.
  return is_of_machine(costs.failure) || costs.failure == WorkerFailure::kTimeout ||
         std::any_of(costs.variants.begin(), costs.variants.end(), [](const MeasuredVariant& row) {
           const auto* invalid = std::get_if<Invalid>(&row.cost);
           return invalid != nullptr && is_of_machine(invalid->failure);
         });
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
  if (costs.failure != WorkerFailure::kNone) result["death"] = failure_name(costs.failure);
  return result;
}

static Result<Conditions> conditions_from_json(const json& j) {
  const JsonFields fields(j);
  Conditions conditions;
  conditions.compute = TRY(fields.number("compute", kSeconds, 0.0));
  conditions.bandwidth = TRY(fields.number("bandwidth", kSeconds, 0.0));
  conditions.other_load = TRY(fields.number("other_load", kPart, 0.0));
  conditions.disturbed = TRY(fields.flag("disturbed", false));
  if (fields.has("usual"))
    conditions.usual = TRY(core_state_from_json(*TRY(fields.object("usual"))));
  return conditions;
}

static Result<MeasuredVariant> measured_variant_from_json(const json& j) {
  const JsonFields fields(j);
  MeasuredVariant row;
  row.variant = TRY(variant_from_json(*TRY(fields.object("variant"))));
  row.cost = TRY(cost_from_json(*TRY(fields.object("cost"))));
  row.repeatable = TRY(fields.flag("repeatable", true));
  row.tried = TRY(fields.flag("tried", false));
  row.error = TRY(fields.number("error", kPart, 0.0));
  return row;
}

Result<TargetCosts> target_costs_from_json(const json& j) {
  const JsonFields fields(j);
  TargetCosts costs;
  costs.target = TRY(fields.text("target"));
  costs.refusal = TRY(fields.text("refusal", ""));
  costs.failure = TRY(failure_from(fields));
  costs.effort = TRY(parse_effort(TRY(fields.text("effort", "default"))));
  costs.seconds = TRY(fields.number("seconds", kSeconds, 0.0));
  if (fields.has("conditions"))
    costs.conditions = TRY(conditions_from_json(*TRY(fields.object("conditions"))));
  costs.variants =
      TRY(list_from<MeasuredVariant>(*TRY(fields.array("variants")), measured_variant_from_json));
  return costs;
}

const FunctionRequest* MeasureTask::function() const {
  return std::visit(
      [](const auto& of) -> const FunctionRequest* {
        if constexpr (std::is_base_of_v<FunctionRequest, std::decay_t<decltype(of)>>) return &of;
        return nullptr;
      },
      request);
}

bool MeasureTask::times() const {
  if (builds) return false;
  const auto* conversion = std::get_if<ConvertRequest>(&request);
  return conversion != nullptr ? conversion->timed : std::holds_alternative<TimeRequest>(request);
}

namespace {

constexpr std::array<const char*, 4> kRequests = {"time", "list", "try", "convert"};  // by index

json to_json(const FunctionRequest& request) {
  json result = {
      {"function", request.text}, {"only_named", request.only_named}, {"named", json::object()}};
  for (const auto& [target, variants] : request.named)
    for (const Variant& variant : variants)
      result["named"][target].push_back(collage::to_json(variant));
  return result;
}

json to_json(const ConvertRequest& request) {
  return {{"shape", request.type.shape},
          {"dtype", dtype_name(request.type.dtype)},
          {"from", collage::to_json(request.from)},
          {"to", collage::to_json(request.to)},
          {"timed", request.timed}};
}

Status read(const JsonFields& fields, FunctionRequest& request) {
  request.text = TRY(fields.text("function"));
  for (const auto& [target, variants] : TRY(fields.object("named"))->items())
    request.named[target] = TRY(list_from<Variant>(variants, variant_from_json));
  request.only_named = TRY(fields.flag("only_named"));
  return {};
}

Status read(const JsonFields& fields, ConvertRequest& request) {
  request.type.shape = TRY(list_from<int64_t>(*TRY(fields.array("shape")), extent_from));
  TRY(checked_num_elements(request.type.shape));
  request.type.dtype = TRY(parse_dtype(TRY(fields.text("dtype"))));
  request.from = TRY(encoding_from(*TRY(fields.object("from"))));
  request.to = TRY(encoding_from(*TRY(fields.object("to"))));
  request.timed = TRY(fields.flag("timed"));
  return {};
}

Result<Request> request_named(const std::string& name) {
  static const std::array<Request, kRequests.size()> all = {TimeRequest(), ListRequest(),
                                                            TryFirstRequest(), ConvertRequest()};
  for (const Request& one : all)
    if (name == kRequests[one.index()]) return one;
  return internal_error("'request' is '{}'", name);
}

}  // namespace

json to_json(const MeasureTask& task) {
  json skip = json::object();
  for (const auto& [subject, invalid] : task.skip) skip[subject] = to_json(invalid);
  json result = std::visit([](const auto& request) { return to_json(request); }, task.request);
  result.update({{"request", kRequests[task.request.index()]},
                 {"targets", task.targets},
                 {"skip", skip},
                 {"only", task.only},
                 {"rounding", static_cast<int>(task.options.rounding)},
                 {"effort", effort_name(task.effort)},
                 {"threads", task.options.threads},
                 {"cache", task.options.cache_folder},
                 {"caches", static_cast<int>(task.cache)},
                 {"builds", task.builds},
                 {"usual", to_json(task.usual)}});
  return result;
}

Result<MeasureTask> task_from_json(const json& j) {
  const JsonFields fields(j);
  MeasureTask task;
  task.request = TRY(request_named(TRY(fields.text("request"))));
  TRY(std::visit([&](auto& request) { return read(fields, request); }, task.request));
  task.targets = TRY(list_from<std::string>(*TRY(fields.array("targets")), text_from));
  for (const auto& [subject, how] : TRY(fields.object("skip"))->items())
    task.skip[subject] = TRY(invalid_from_json(how));
  task.only = TRY(fields.text("only"));
  constexpr auto kMost = static_cast<int64_t>(RoundingLimit::kAny);
  task.options.rounding = static_cast<RoundingLimit>(TRY(fields.integer("rounding", 0, kMost)));
  task.effort = TRY(parse_effort(TRY(fields.text("effort"))));
  task.options.threads = static_cast<int>(TRY(fields.integer("threads", 0, 1 << 16)));
  task.options.cache_folder = TRY(fields.text("cache"));
  constexpr auto kLast = static_cast<int64_t>(CacheState::kStreaming);
  task.cache = static_cast<CacheState>(TRY(fields.integer("caches", 0, kLast)));
  task.builds = TRY(fields.flag("builds"));
  task.usual = TRY(core_state_from_json(*TRY(fields.object("usual"))));
  return task;
}

}  // namespace collage
