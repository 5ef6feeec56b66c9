#include <cstring>
#include <nlohmann/json.hpp>

#include "artifact/kernel_libraries.h"
#include "artifact/saved_plan.h"
#include "base/hash.h"
#include "base/integers.h"
#include "runtime/core_team.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "runtime/thread_team.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kDataAlignment = 64;

json signature(const PlanSignature& signature) {
  json entry = to_json(signature.type);
  entry["name"] = signature.name;
  return entry;
}

}  // namespace

Result<json> PlanSaver::description_of(const Plan& plan) {
  json inputs = json::array(), outputs = json::array(), buffers = json::array(),
       steps = json::array(), arenas = json::array();
  for (const PlanSignature& input : plan.inputs) inputs.push_back(signature(input));
  for (const PlanSignature& output : plan.outputs) outputs.push_back(signature(output));
  for (const Buffer& buffer : plan.buffers) buffers.push_back(save_buffer(buffer));
  for (const Step& step : plan.steps)
    steps.push_back(TRY(save_step(step).with_context(
        step.target.empty() ? step.name : step.name + " (" + step.target + ")")));
  for (const DeviceArena& arena : plan.device_arenas)
    arenas.push_back({{"device", to_json(arena.device)}, {"bytes", arena.bytes}});
  return json{{"inputs", std::move(inputs)},     {"outputs", std::move(outputs)},
              {"buffers", std::move(buffers)},   {"steps", std::move(steps)},
              {"arena_bytes", plan.arena_bytes}, {"device_arenas", std::move(arenas)}};
}

Status PlanSaver::add(const std::string& entry, const Plan& plan) {
  add_text(entry, json_text(TRY(run_with_team(threads_, [&] { return description_of(plan); }))));
  return {};
}

json PlanSaver::save_buffer(const Buffer& buffer) {
  json entry = {{"place", static_cast<int>(buffer.place)},
                {"index", buffer.index},
                {"offset", buffer.offset},
                {"type", to_json(buffer.type)},
                {"encoding", to_json(buffer.encoding)}};
  if (buffer.place == Buffer::Place::kConstant) entry["constant"] = add_constant(buffer.constant);
  return entry;
}

Result<json> PlanSaver::save_step(const Step& step) {
  if (!is_host_memory(step.device) && step.kernel->workspace_bytes() > 0)
    return unsupported("a kernel with workspace on {}", device_text(step.device));
  const SavedKernel kernel = TRY(own_kernel(*step.kernel).save());
  const KernelLoader* loader = TRY(find_kernel_library(kernel.loader));
  result_.loaders[loader->name] = loader->version;
  json constants = json::array(), objects = json::array();
  for (const SharedBytes& constant : kernel.constants) constants.push_back(add_constant(constant));
  for (const SharedBytes& object : kernel.objects) objects.push_back(add_object(object));
  json saved{{"name", step.name},
             {"target", step.target},
             {"loader", kernel.loader},
             {"description", kernel.description},
             {"constants", std::move(constants)},
             {"objects", std::move(objects)},
             {"inputs", step.inputs},
             {"outputs", step.outputs},
             {"workspace", step.workspace_offset},
             {"workspace_bytes", step.kernel->workspace_bytes()}};
  if (step.has_effects) saved["has_effects"] = true;
  if (const auto* on_cores = dynamic_cast<const CoreKernel*>(step.kernel.get()))
    saved["cores"] = on_cores->cores().to_string();
  for (const std::shared_ptr<const Plan>& plan : kernel.plans)
    saved["plans"].push_back(TRY(description_of(*plan)));
  return saved;
}

std::pair<size_t, size_t> PlanSaver::add_constant(const SharedBytes& constant) {
  // Plans of one program share their weights, which take a second to hash.
  const auto address = std::pair(constant.data.get(), constant.bytes);
  if (const auto same = known_.find(address); same != known_.end())
    return {same->second, constant.bytes};
  auto [known, fresh] = constant_offsets_.emplace(sha256_hex(constant.text()), weight_bytes_);
  if (fresh) {
    constants_.emplace_back(known->second, constant);
    known_[address] = known->second;
    weight_bytes_ += round_up(constant.bytes, kDataAlignment);
  }
  return {known->second, constant.bytes};
}

std::pair<size_t, size_t> PlanSaver::add_constant(const Tensor& tensor) {
  auto holder = std::make_shared<Tensor>(tensor);
  return add_constant(SharedBytes{{holder, holder->raw()}, tensor.bytes()});
}

std::string PlanSaver::add_object(const SharedBytes& object) {
  auto [known, fresh] = object_names_.emplace(sha256_hex(object.text()),
                                              fmt::format("objects/{:05}", objects_.size()));
  if (fresh) objects_.emplace_back(known->second, object);
  return known->second;
}

void PlanSaver::add_text(const std::string& entry, std::string text) {
  auto holder = std::make_shared<const std::string>(std::move(text));
  result_.entries.push_back({entry, {{holder, holder->data()}, holder->size()}});
}

Result<SavedPlans> PlanSaver::finish() {
  std::shared_ptr<void> block = TRY(allocate_on_huge_pages(weight_bytes_));  // zeros
  for (const auto& [offset, constant] : constants_)
    if (constant.bytes > 0)
      std::memcpy(static_cast<char*>(block.get()) + offset, constant.data.get(), constant.bytes);
  result_.entries.push_back({kWeightsEntry, {std::move(block), weight_bytes_}});
  for (const auto& [name, object] : objects_) result_.entries.push_back({name, object});
  return std::move(result_);
}

}  // namespace collage
