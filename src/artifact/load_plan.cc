#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "artifact/kernel_libraries.h"
#include "artifact/saved_plan.h"
#include "base/integers.h"
#include "base/no_exceptions.h"
#include "base/printable.h"
#include "runtime/core_team.h"
#include "runtime/saved_fields.h"
#include "runtime/thread_team.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kMostTensors = 1 << 24;
constexpr int kMostDepth = 32;  // of plans that kernels of plans run

// [begin, begin + bytes) of something that has so many.
bool lies_within(size_t begin, size_t bytes, size_t whole) {
  return begin <= whole && bytes <= whole - begin;
}

class Loading {
 public:
  Loading(const EntryReader& entry, int threads, int depth = 0)
      : entry_(entry), threads_(threads), depth_(depth) {}

  Result<LoadedPlan> run(const json& description) {
    if (depth_ > kMostDepth) return bad_model("plans nested more than {} deep", kMostDepth);
    weights_ = TRY(entry_(kWeightsEntry));
    const JsonFields fields(description);
    plan_->arena_bytes = static_cast<size_t>(TRY(fields.integer("arena_bytes", 0, most_bytes())));
    for (const json& arena : *TRY(fields.array("device_arenas"))) TRY(add_device_arena(arena));
    for (const json& input : *TRY(fields.array("inputs")))
      plan_->inputs.push_back(TRY(signature(input)));
    for (const json& output : *TRY(fields.array("outputs")))
      plan_->outputs.push_back(TRY(signature(output)));
    for (const json& buffer : *TRY(fields.array("buffers"))) TRY(add_buffer(buffer));
    TRY(check_parts());
    for (const json& step : *TRY(fields.array("steps"))) TRY(read_step(step));
    TRY(load_kernels());
    TRY(place_workspaces());
    size_t packed = inner_packed_ + (depth_ == 0 ? weights_.bytes : 0);
    for (size_t i = 0; i < saved_.size(); ++i) {
      size_t mapped = 0;
      for (const SharedBytes& constant : saved_[i].constants) mapped += constant.bytes;
      if (saved_[i].plans.empty())
        packed += std::max(plan_->steps[i].kernel->constant_bytes(), mapped) - mapped;
    }
    return LoadedPlan{std::move(plan_), packed};
  }

 private:
  static Result<PlanSignature> signature(const json& value) {
    PlanSignature signature;
    signature.name = TRY(JsonFields(value).text("name"));
    signature.type = TRY(tensor_type_from(value));
    return signature;
  }

  Status add_device_arena(const json& value) {
    const JsonFields fields(value);
    DeviceArena arena;
    arena.device = TRY(device_from(*TRY(fields.object("device"))));
    arena.bytes = static_cast<size_t>(TRY(fields.integer("bytes", 0, most_bytes())));
    if (is_host_memory(arena.device) || arena_bytes(arena.device).ok())
      return bad_model("a second arena of {}", printable(device_text(arena.device)));
    plan_->device_arenas.push_back(std::move(arena));
    return {};
  }

  // The size of the arena there.
  Result<size_t> arena_bytes(const VirtualDevice& device) const {
    if (is_host_memory(device)) return plan_->arena_bytes;
    for (const DeviceArena& arena : plan_->device_arenas)
      if (arena.device == device) return arena.bytes;
    return bad_model("there is no arena of {}", printable(device_text(device)));
  }

  Status add_buffer(const json& value) {
    const JsonFields fields(value);
    Buffer buffer;
    buffer.place = static_cast<Buffer::Place>(
        TRY(fields.integer("place", 0, static_cast<int>(Buffer::Place::kPart))));
    buffer.index = static_cast<size_t>(TRY(fields.integer("index", 0, kMostTensors)));
    buffer.offset = static_cast<size_t>(TRY(fields.integer("offset", 0, most_bytes())));
    buffer.type = TRY(tensor_type_from(*TRY(fields.object("type"))));
    buffer.encoding = TRY(encoding_from(*TRY(fields.object("encoding"))));
    buffer.bytes = TRY(encoded_bytes(buffer.type.shape, buffer.encoding));
    const auto refuse = [&](const char* why) {
      return bad_model("buffer {}: {}", plan_->buffers.size(), why);
    };
    const bool of_host = is_host_memory(buffer.encoding.device);
    switch (buffer.place) {
      case Buffer::Place::kInput:
        if (!of_host || buffer.index >= plan_->inputs.size() ||
            buffer.bytes != plan_->inputs[buffer.index].type.bytes())
          return refuse("no such input");
        break;
      case Buffer::Place::kOutput:
        if (!of_host || buffer.index >= plan_->outputs.size() ||
            buffer.bytes != plan_->outputs[buffer.index].type.bytes())
          return refuse("no such output");
        break;
      case Buffer::Place::kConstant: {
        const SharedBytes constant = TRY(constant_from(fields, "constant", weights_));
        if (constant.bytes != buffer.bytes || !buffer.encoding.is_plain())
          return refuse("its constant has another size");
        auto owner = std::const_pointer_cast<void>(constant.data);
        buffer.constant =
            Tensor::share(buffer.encoding.dtype, buffer.type.shape, owner, owner.get());
        break;
      }
      case Buffer::Place::kArena: {
        const size_t arena = TRY(arena_bytes(buffer.encoding.device));
        if (buffer.offset % (of_host ? kArenaAlignment : kDeviceArenaAlignment) != 0 ||
            !lies_within(buffer.offset, buffer.bytes, arena))
          return refuse("it lies outside the arena");
        break;
      }
      case Buffer::Place::kPart:
        if (buffer.offset % kArenaAlignment != 0) return refuse("it is not aligned");
        break;
    }
    plan_->buffers.push_back(std::move(buffer));
    return {};
  }

  Status check_parts() {
    for (size_t i = 0; i < plan_->buffers.size(); ++i) {
      const Buffer& part = plan_->buffers[i];
      if (part.place != Buffer::Place::kPart) continue;
      const Buffer* whole =
          part.index < plan_->buffers.size() ? &plan_->buffers[part.index] : nullptr;
      if (whole == nullptr || whole->place == Buffer::Place::kPart ||
          part.encoding.device != whole->encoding.device ||
          !lies_within(part.offset, part.bytes, whole->bytes))
        return bad_model("buffer {}: it is a part of no other", i);
    }
    return {};
  }

  Result<std::vector<BufferId>> buffers_of(const JsonFields& fields, const char* name) {
    std::vector<BufferId> ids;
    for (int64_t id : TRY(integers_from(
             fields, name, 0, static_cast<int64_t>(plan_->buffers.size()) - 1, kMostTensors)))
      ids.push_back(static_cast<BufferId>(id));
    return ids;
  }

  // All of a step but its kernel.
  Status read_step(const json& value) {
    const JsonFields fields(value);
    Step step;
    step.name = TRY(fields.text("name"));
    step.target = TRY(fields.text("target"));
    step.inputs = TRY(buffers_of(fields, "inputs"));
    step.outputs = TRY(buffers_of(fields, "outputs"));
    step.workspace_offset = static_cast<size_t>(TRY(fields.integer("workspace", 0, most_bytes())));
    workspace_bytes_.push_back(
        static_cast<size_t>(TRY(fields.integer("workspace_bytes", 0, most_bytes()))));
    SavedKernel saved;
    saved.loader = TRY(fields.text("loader"));
    saved.description = TRY(fields.text("description"));
    for (const json& range : *TRY(fields.array("constants"))) {
      const json wrapped = {{"constant", range}};
      saved.constants.push_back(TRY(constant_from(JsonFields(wrapped), "constant", weights_)));
    }
    for (const json& name : *TRY(fields.array("objects"))) {
      if (!name.is_string()) return bad_model("an object without a name");
      saved.objects.push_back(TRY(entry_(name.get<std::string>())));
    }
    if (value.contains("plans"))
      for (const json& plan : *TRY(fields.array("plans"))) {
        LoadedPlan loaded = TRY(Loading(entry_, threads_, depth_ + 1).run(plan));
        inner_packed_ += loaded.packed_bytes;
        saved.plans.push_back(std::move(loaded.plan));
      }
    for (const BufferId id : step.inputs) {
      saved.buffers.inputs.push_back(plan_->buffers[id].bytes);
      saved.buffers.input_devices.push_back(plan_->buffers[id].encoding.device);
    }
    for (const BufferId id : step.outputs) {
      const Buffer& buffer = plan_->buffers[id];
      const Buffer& whole =
          buffer.place == Buffer::Place::kPart ? plan_->buffers[buffer.index] : buffer;
      if (whole.place == Buffer::Place::kInput || whole.place == Buffer::Place::kConstant)
        return bad_model("{}: it writes an input or a constant", printable(step.name));
      saved.buffers.outputs.push_back(buffer.bytes);
      saved.buffers.output_devices.push_back(buffer.encoding.device);
    }
    step.has_effects = value.contains("has_effects");
    Cores& cores = cores_.emplace_back();
    if (value.contains("cores")) {
      cores = TRY(Cores::parse(TRY(fields.text("cores"))));
      TRY(cores.check_available().with_context(printable(step.name)));
    }
    loaders_.push_back(TRY(find_kernel_library(saved.loader)));
    saved_.push_back(std::move(saved));
    plan_->steps.push_back(std::move(step));
    return {};
  }

  // On as many threads as the program has, where loaders allow it: making oneDNN's primitives
  // compiles code, which would be most of the time that loading takes.
  Status load_kernels() {
    std::vector<Status> results(saved_.size());
    const auto spread = [&](size_t i) { return loaders_[i]->on_any_thread; };
    size_t many = 0;
    for (size_t i = 0; i < saved_.size(); ++i) many += spread(i) ? 1 : 0;
    std::atomic<size_t> next{0};
    const int cores = std::min(threads_, ThreadTeam::available_cores());
    run_on_new_threads(std::min(cores, static_cast<int>(many)), [&](int) {
      for (size_t i = next++; i < saved_.size(); i = next++)
        if (spread(i)) results[i] = load_kernel(i);
    });
    for (size_t i = 0; i < saved_.size(); ++i)
      if (!spread(i)) results[i] = load_kernel(i);
    for (Status& result : results) TRY(std::move(result));
    return {};
  }

  Status load_kernel(size_t i) {
    Step& step = plan_->steps[i];
    const Cores& cores = cores_[i];
    const int threads = cores.empty() ? threads_ : cores.count();
    const TeamScope team(threads);
    Result<std::shared_ptr<Kernel>> kernel =
        without_exceptions([&] { return loaders_[i]->load(saved_[i], threads); });
    if (!kernel.ok()) return std::move(kernel).status().with_context(printable(step.name));
    step.kernel = std::move(kernel).value();
    if (!cores.empty()) step.kernel = std::make_shared<CoreKernel>(std::move(step.kernel), cores);
    return {};
  }

  // The workspace of a kernel for other threads than it was saved with may be larger than its
  // place, around which other buffers lie: it lies beyond all else then. One kernel of the host
  // runs at a time.
  Status place_workspaces() {
    const size_t end = round_up(plan_->arena_bytes, kArenaAlignment);
    for (size_t i = 0; i < plan_->steps.size(); ++i) {
      Step& step = plan_->steps[i];
      const size_t bytes = step.kernel->workspace_bytes();
      if (bytes == 0 ||
          (bytes <= workspace_bytes_[i] && step.workspace_offset % kArenaAlignment == 0 &&
           lies_within(step.workspace_offset, bytes, TRY(arena_bytes(step.device)))))
        continue;
      if (!is_host_memory(step.device) || bytes > static_cast<size_t>(most_bytes()) - end)
        return bad_model("{}: its workspace lies outside the arena", printable(step.name));
      step.workspace_offset = end;
      plan_->arena_bytes = std::max(plan_->arena_bytes, end + bytes);
    }
    return {};
  }

  const EntryReader& entry_;
  const int threads_, depth_;
  size_t inner_packed_ = 0;  // of plans that kernels run
  SharedBytes weights_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  // Of each step:
  std::vector<SavedKernel> saved_;
  std::vector<size_t> workspace_bytes_;  // that its place has
  std::vector<const KernelLoader*> loaders_;
  std::vector<Cores> cores_;  // none: the program's threads compute it
};

}  // namespace

Result<LoadedPlan> load_plan(const EntryReader& entry, const std::string& name, int threads) {
  const SharedBytes text = TRY(entry(name));
  return or_bad_model(Loading(entry, threads).run(parse_json(text.text())));
}

Result<SharedBytes> constant_from(const JsonFields& fields, const char* name,
                                  const SharedBytes& weights) {
  const std::vector<int64_t> range = TRY(integers_from(fields, name, 0, most_bytes(), 2));
  if (range.size() != 2 || range[0] % static_cast<int64_t>(kArenaAlignment) != 0 ||
      !lies_within(static_cast<size_t>(range[0]), static_cast<size_t>(range[1]), weights.bytes))
    return bad_model("'{}' lies outside the weights", name);
  const auto* data = static_cast<const char*>(weights.data.get()) + range[0];
  return SharedBytes{{weights.data, data}, static_cast<size_t>(range[1])};
}

}  // namespace collage
