#include <cstring>
#include <nlohmann/json.hpp>

#include "artifact/kernel_libraries.h"
#include "artifact/saved_plan.h"
#include "base/hash.h"
#include "base/integers.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "runtime/thread_team.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kAlignment = 64;

class Saving {
 public:
  Result<SavedPlan> run(const Plan& plan) {
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
    const json description = {
        {"inputs", std::move(inputs)},     {"outputs", std::move(outputs)},
        {"buffers", std::move(buffers)},   {"steps", std::move(steps)},
        {"arena_bytes", plan.arena_bytes}, {"device_arenas", std::move(arenas)}};
    add_text(kPlanEntry, json_text(description));
    TRY(add_weights());
    for (const auto& [name, object] : objects_) result_.entries.push_back({name, object});
    return std::move(result_);
  }

 private:
  static json signature(const PlanSignature& signature) {
    json entry = to_json(signature.type);
    entry["name"] = signature.name;
    return entry;
  }

  json save_buffer(const Buffer& buffer) {
    json entry = {{"place", static_cast<int>(buffer.place)},
                  {"index", buffer.index},
                  {"offset", buffer.offset},
                  {"type", to_json(buffer.type)},
                  {"encoding", to_json(buffer.encoding)}};
    if (buffer.place == Buffer::Place::kConstant) {
      auto holder = std::make_shared<Tensor>(buffer.constant);
      entry["constant"] = add_constant({{holder, holder->raw()}, buffer.constant.bytes()});
    }
    return entry;
  }

  Result<json> save_step(const Step& step) {
    if (!is_host_memory(step.device) && step.kernel->workspace_bytes() > 0)
      return unsupported("a kernel with workspace on {}", device_text(step.device));
    const SavedKernel kernel = TRY(step.kernel->save());
    const KernelLoader* loader = TRY(find_kernel_library(kernel.loader));
    result_.loaders[loader->name] = loader->version;
    json constants = json::array(), objects = json::array();
    for (const SharedBytes& constant : kernel.constants)
      constants.push_back(add_constant(constant));
    for (const SharedBytes& object : kernel.objects) objects.push_back(add_object(object));
    return json{{"name", step.name},
                {"target", step.target},
                {"loader", kernel.loader},
                {"description", kernel.description},
                {"constants", std::move(constants)},
                {"objects", std::move(objects)},
                {"inputs", step.inputs},
                {"outputs", step.outputs},
                {"workspace", step.workspace_offset}};
  }

  // [offset, bytes] in the block of weights.
  json add_constant(const SharedBytes& constant) {
    const std::string hash = sha256_hex(constant.text());
    auto [known, fresh] = constant_offsets_.emplace(hash, weight_bytes_);
    if (fresh) {
      constants_.emplace_back(known->second, constant);
      weight_bytes_ += round_up(constant.bytes, kAlignment);
    }
    return {known->second, constant.bytes};
  }

  std::string add_object(const SharedBytes& object) {
    auto [known, fresh] = object_names_.emplace(sha256_hex(object.text()),
                                                fmt::format("objects/{:05}", objects_.size()));
    if (fresh) objects_.emplace_back(known->second, object);
    return known->second;
  }

  void add_text(const std::string& name, std::string text) {
    auto holder = std::make_shared<const std::string>(std::move(text));
    result_.entries.push_back({name, {{holder, holder->data()}, holder->size()}});
  }

  Status add_weights() {
    std::shared_ptr<void> block = TRY(allocate_on_huge_pages(weight_bytes_));  // zeros
    for (const auto& [offset, constant] : constants_)
      if (constant.bytes > 0)
        std::memcpy(static_cast<char*>(block.get()) + offset, constant.data.get(), constant.bytes);
    result_.entries.push_back({kWeightsEntry, {std::move(block), weight_bytes_}});
    return {};
  }

  SavedPlan result_;
  size_t weight_bytes_ = 0;
  std::map<std::string, size_t> constant_offsets_;  // by hash
  std::vector<std::pair<size_t, SharedBytes>> constants_;
  std::map<std::string, std::string> object_names_;  // by hash
  std::vector<std::pair<std::string, SharedBytes>> objects_;
};

}  // namespace

Result<SavedPlan> save_plan(const Plan& plan, int threads) {
  Result<SavedPlan> saved = internal_error("nothing was saved");
  run_with_team(threads, [&] { saved = Saving().run(plan); });
  return saved;
}

}  // namespace collage
