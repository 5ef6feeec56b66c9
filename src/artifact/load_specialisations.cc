#include <algorithm>
#include <nlohmann/json.hpp>

#include "artifact/load_artifact.h"
#include "artifact/saved_values.h"
#include "artifact/specialisations.h"
#include "base/no_exceptions.h"
#include "base/printable.h"
#include "ops/registry.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;
using tensor_program::ModuleParts;
using tensor_program::SymbolicModule;

namespace {

Result<TensorInfo> info_from(const json& value) {
  const JsonFields fields(value);
  return open_tensor(TRY(fields.text("name")), TRY(texts_from(fields, "dims")),
                     TRY(parse_dtype(TRY(fields.text("dtype")))), TRY(fields.flag("has_shape")));
}

Result<std::vector<TensorInfo>> infos_from(const JsonFields& fields, const char* name) {
  std::vector<TensorInfo> infos;
  for (const json& value : *TRY(fields.array(name))) infos.push_back(TRY(info_from(value)));
  return infos;
}

Result<StateInfo> state_from(const json& value) {
  const JsonFields fields(value);
  StateInfo state;
  state.input = TRY(info_from(*TRY(fields.object("input"))));
  state.added = TRY(info_from(*TRY(fields.object("added"))));
  state.dim = TRY(fields.text("dim"));
  state.axis = static_cast<size_t>(TRY(fields.integer("axis", 0, 1 << 10)));
  if (state.axis >= state.input.dims.size() || state.axis >= state.added.dims.size() ||
      state.input.dims[state.axis] != state.dim)
    return bad_model("state '{}' has no dimension that grows", printable(state.input.name));
  return state;
}

Result<BucketedInterface> interface_from(const json& value) {
  const JsonFields fields(value);
  BucketedInterface interface;
  interface.inputs = TRY(infos_from(fields, "inputs"));
  interface.outputs = TRY(infos_from(fields, "outputs"));
  for (const json& state : *TRY(fields.array("states")))
    interface.states.push_back(TRY(state_from(state)));
  interface.buckets = TRY(sizes_from(fields, "buckets"));
  interface.padding = TRY(numbers_from(fields, "padding"));
  return interface;
}

Result<PlanForShapes> plan_names_from(const JsonFields& fields, const SharedBytes& weights) {
  PlanForShapes names;
  for (const auto& [name, condition] : TRY(fields.object("conditions"))->items()) {
    const JsonFields of(condition);
    TensorCondition& read = names.conditions[name];
    read.type = TRY(tensor_type_from(*TRY(of.object("type"))));
    if (of.has("value")) read.value = TRY(tensor_from(condition, weights));
  }
  names.part = TRY(fields.text("part"));
  names.inputs = TRY(texts_from(fields, "inputs"));
  names.outputs = TRY(texts_from(fields, "outputs"));
  names.aliases = TRY(names_from(fields, "aliases"));
  names.constants = TRY(tensors_from(fields, "constants", weights));
  return names;
}

}  // namespace

Result<LoadedSpecialisations::Table> LoadedSpecialisations::read(ArtifactFile& file) {
  const SharedBytes text = TRY(file.entry(kSpecialisationsEntry));
  const SharedBytes weights = TRY(file.entry(kWeightsEntry));
  const json value = parse_json(text.text());
  const JsonFields fields(value);
  Table table;
  table.interface = TRY(interface_from(*TRY(fields.object("interface"))));
  table.results = TRY(texts_from(fields, "results"));
  if (table.results.size() != table.interface.outputs.size() + table.interface.states.size())
    return bad_model("there are {} results of {} outputs and {} states", table.results.size(),
                     table.interface.outputs.size(), table.interface.states.size());
  for (const json& one : *TRY(fields.array("specialisations"))) {
    table.specialisations.push_back(TRY(plan_names_from(JsonFields(one), weights)));
    table.entries.push_back(TRY(JsonFields(one).text("plan")));
  }
  if (fields.has("module")) {
    const JsonFields module(*TRY(fields.object("module")));
    std::vector<Tensor> constants;
    for (const json& constant : *TRY(module.array("constants")))
      constants.push_back(TRY(tensor_from(constant, weights)));
    register_all_ops();
    table.parts = std::make_shared<const ModuleParts>(TRY(ModuleParts::of(
        TRY(SymbolicModule::parse(TRY(module.text("text")), std::move(constants))))));
  }
  return table;
}

Result<std::shared_ptr<LoadedSpecialisations>> LoadedSpecialisations::load(
    std::shared_ptr<ArtifactFile> file) {
  return without_exceptions([&]() -> Result<std::shared_ptr<LoadedSpecialisations>> {
    TRY(check_requirements(file->manifest()));
    TRY(check_loaded_by("Program::load", file->manifest()));
    Table table = TRY(or_bad_model(read(*file)));
    return std::shared_ptr<LoadedSpecialisations>(
        new LoadedSpecialisations(std::move(file), std::move(table)));
  });
}

Result<size_t> LoadedSpecialisations::find(const TensorsByName& inputs) const {
  const std::vector<PlanForShapes>& known = table_.specialisations;
  for (size_t i = 0; i < known.size(); ++i)
    if (hold(known[i].conditions, inputs)) return i;
  TensorConditions given;
  for (const auto& [name, tensor] : inputs) given[name].type = {tensor.shape(), tensor.dtype()};
  return error(ErrorCode::kUnavailable, "it was not compiled for {}", shapes_text(given));
}

std::optional<size_t> LoadedSpecialisations::find_part(const std::string& key) const {
  const std::vector<PlanForShapes>& known = table_.specialisations;
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const PlanForShapes& one) { return one.part == key; });
  if (found == known.end()) return std::nullopt;
  return static_cast<size_t>(found - known.begin());
}

Result<std::shared_ptr<const Plan>> LoadedSpecialisations::plan(size_t number) {
  const std::lock_guard lock(loading_);
  const std::string& entry = table_.entries.at(number);
  if (plans_[number] != nullptr || entry.empty()) return plans_[number];
  LoadedPlan loaded = TRY(load_plan_of(*file_, entry));
  const PlanForShapes& names = table_.specialisations[number];
  if (loaded.plan->inputs.size() != names.inputs.size() ||
      loaded.plan->outputs.size() != names.outputs.size())
    return bad_model("{}: its plan has other inputs and outputs", printable(entry));
  return plans_[number] = std::move(loaded.plan);
}

}  // namespace collage
