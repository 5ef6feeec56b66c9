#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "artifact/saved_values.h"
#include "artifact/specialisations.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

json to_json(const TensorInfo& info) {
  return {{"name", info.name},
          {"dims", info.dims},
          {"dtype", std::string(dtype_name(info.dtype))},
          {"has_shape", info.has_shape}};
}

json to_json(const std::vector<TensorInfo>& infos) {
  json list = json::array();
  for (const TensorInfo& info : infos) list.push_back(to_json(info));
  return list;
}

json to_json(const BucketedInterface& interface) {
  json states = json::array();
  for (const StateInfo& state : interface.states)
    states.push_back({{"input", to_json(state.input)},
                      {"added", to_json(state.added)},
                      {"axis", state.axis},
                      {"dim", state.dim}});
  return {{"inputs", to_json(interface.inputs)},
          {"outputs", to_json(interface.outputs)},
          {"states", std::move(states)},
          {"buckets", interface.buckets},
          {"padding", interface.padding}};
}

json add_names(const PlanForShapes& names, PlanSaver& saver) {
  json conditions = json::object();
  for (const auto& [name, condition] : names.conditions)
    conditions[name] = condition.value ? add_tensor(*condition.value, saver)
                                       : json{{"type", to_json(condition.type)}};
  return {{"part", names.part},       {"conditions", std::move(conditions)},
          {"inputs", names.inputs},   {"outputs", names.outputs},
          {"aliases", names.aliases}, {"constants", add_tensors(names.constants, saver)}};
}

}  // namespace

Status write_artifact(const std::filesystem::path& path, const CompiledSpecialisations& program,
                      const PlanFacts& facts) {
  PlanSaver saver(facts.threads);
  json list = json::array();
  for (size_t i = 0; i < program.specialisations.size(); ++i) {
    const CompiledForShapes& compiled = program.specialisations[i];
    json entry = add_names(compiled.names, saver);
    entry["plan"] = compiled.plan != nullptr ? fmt::format("plans/{:05}", i) : "";
    if (compiled.plan != nullptr)
      TRY(saver.add(entry["plan"].get<std::string>(), *compiled.plan)
              .with_context(shapes_text(compiled.names.conditions)));
    list.push_back(std::move(entry));
  }
  json value = {{"interface", to_json(program.interface)},
                {"results", program.results},
                {"specialisations", std::move(list)}};
  if (program.parts != nullptr) {
    const tensor_program::SymbolicModule& module = program.parts->module();
    std::vector<json> constants;
    for (const Tensor& constant : module.constants())
      constants.push_back(add_tensor(constant, saver));
    value["module"] = {{"text", module.text()}, {"constants", std::move(constants)}};
  }
  saver.add_text(kSpecialisationsEntry, json_text(std::move(value)));
  return write_artifact(path, TRY(saver.finish()), facts, {});
}

}  // namespace collage
