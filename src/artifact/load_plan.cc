#include <nlohmann/json.hpp>

#include "artifact/kernel_libraries.h"
#include "artifact/saved_plan.h"
#include "base/printable.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 46;
constexpr size_t kMostTensors = 1 << 24;

// [begin, begin + bytes) of something that has so many.
bool lies_within(size_t begin, size_t bytes, size_t whole) {
  return begin <= whole && bytes <= whole - begin;
}

class Loading {
 public:
  Loading(const EntryReader& entry, int threads) : entry_(entry), threads_(threads) {}

  Result<std::shared_ptr<const Plan>> run() {
    const SharedBytes text = TRY(entry_(kPlanEntry));
    weights_ = TRY(entry_(kWeightsEntry));
    const json description = parse_json(text.text());
    const JsonFields fields(description);
    plan_->arena_bytes = static_cast<size_t>(TRY(fields.integer("arena_bytes", 0, kMostBytes)));
    for (const json& input : *TRY(fields.array("inputs")))
      plan_->inputs.push_back(TRY(signature(input)));
    for (const json& output : *TRY(fields.array("outputs")))
      plan_->outputs.push_back(TRY(signature(output)));
    for (const json& buffer : *TRY(fields.array("buffers"))) TRY(add_buffer(buffer));
    TRY(check_parts());
    for (const json& step : *TRY(fields.array("steps"))) TRY(add_step(step));
    return std::shared_ptr<const Plan>(std::move(plan_));
  }

 private:
  static Result<PlanSignature> signature(const json& value) {
    PlanSignature signature;
    signature.name = TRY(JsonFields(value).text("name"));
    signature.type = TRY(tensor_type_from(value));
    return signature;
  }

  Status add_buffer(const json& value) {
    const JsonFields fields(value);
    Buffer buffer;
    buffer.place = static_cast<Buffer::Place>(
        TRY(fields.integer("place", 0, static_cast<int>(Buffer::Place::kPart))));
    buffer.index = static_cast<size_t>(TRY(fields.integer("index", 0, kMostTensors)));
    buffer.offset = static_cast<size_t>(TRY(fields.integer("offset", 0, kMostBytes)));
    buffer.type = TRY(tensor_type_from(*TRY(fields.object("type"))));
    buffer.encoding = TRY(encoding_from(*TRY(fields.object("encoding"))));
    const Layout& layout = buffer.encoding.layout;
    if (!layout.fits(static_cast<int64_t>(buffer.type.shape.size())))
      return bad_model("a buffer {} in layout {}", buffer.type.to_string(), layout.to_string());
    TRY(checked_num_elements(layout.physical_shape(buffer.type.shape)));
    buffer.bytes = layout.physical_bytes(buffer.type.shape, buffer.encoding.dtype);
    const auto refuse = [&](const char* why) {
      return bad_model("buffer {}: {}", plan_->buffers.size(), why);
    };
    switch (buffer.place) {
      case Buffer::Place::kInput:
        if (buffer.index >= plan_->inputs.size() ||
            buffer.bytes != plan_->inputs[buffer.index].type.bytes())
          return refuse("no such input");
        break;
      case Buffer::Place::kOutput:
        if (buffer.index >= plan_->outputs.size() ||
            buffer.bytes != plan_->outputs[buffer.index].type.bytes())
          return refuse("no such output");
        break;
      case Buffer::Place::kConstant: {
        const SharedBytes constant = TRY(range_of_weights(fields, "constant"));
        if (constant.bytes != buffer.bytes || !buffer.encoding.is_plain())
          return refuse("its constant has another size");
        auto owner = std::const_pointer_cast<void>(constant.data);
        buffer.constant =
            Tensor::share(buffer.encoding.dtype, buffer.type.shape, owner, owner.get());
        break;
      }
      case Buffer::Place::kArena:
        if (buffer.offset % kArenaAlignment != 0 ||
            !lies_within(buffer.offset, buffer.bytes, plan_->arena_bytes))
          return refuse("it lies outside the arena");
        break;
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
          !lies_within(part.offset, part.bytes, whole->bytes))
        return bad_model("buffer {}: it is a part of no other", i);
    }
    return {};
  }

  Result<SharedBytes> range_of_weights(const JsonFields& fields, const char* name) {
    const std::vector<int64_t> range = TRY(integers_from(fields, name, 0, kMostBytes, 2));
    if (range.size() != 2 || range[0] % static_cast<int64_t>(kArenaAlignment) != 0 ||
        !lies_within(static_cast<size_t>(range[0]), static_cast<size_t>(range[1]), weights_.bytes))
      return bad_model("'{}' lies outside the weights", name);
    const auto* data = static_cast<const char*>(weights_.data.get()) + range[0];
    return SharedBytes{{weights_.data, data}, static_cast<size_t>(range[1])};
  }

  Result<std::vector<BufferId>> buffers_of(const JsonFields& fields, const char* name) {
    std::vector<BufferId> ids;
    for (int64_t id : TRY(integers_from(
             fields, name, 0, static_cast<int64_t>(plan_->buffers.size()) - 1, kMostTensors)))
      ids.push_back(static_cast<BufferId>(id));
    return ids;
  }

  Status add_step(const json& value) {
    const JsonFields fields(value);
    Step step;
    step.name = TRY(fields.text("name"));
    step.target = TRY(fields.text("target"));
    step.inputs = TRY(buffers_of(fields, "inputs"));
    step.outputs = TRY(buffers_of(fields, "outputs"));
    step.workspace_offset = static_cast<size_t>(TRY(fields.integer("workspace", 0, kMostBytes)));
    SavedKernel saved;
    saved.loader = TRY(fields.text("loader"));
    saved.description = TRY(fields.text("description"));
    for (const json& range : *TRY(fields.array("constants"))) {
      const json wrapped = {{"constant", range}};
      saved.constants.push_back(TRY(range_of_weights(JsonFields(wrapped), "constant")));
    }
    for (const json& name : *TRY(fields.array("objects"))) {
      if (!name.is_string()) return bad_model("an object without a name");
      saved.objects.push_back(TRY(entry_(name.get<std::string>())));
    }
    const KernelLoader* loader = TRY(find_kernel_library(saved.loader));
    step.kernel = TRY(loader->load(saved, threads_).with_context(printable(step.name)));
    if (const size_t bytes = step.kernel->workspace_bytes();
        bytes > 0 && (step.workspace_offset % kArenaAlignment != 0 ||
                      !lies_within(step.workspace_offset, bytes, plan_->arena_bytes)))
      return bad_model("{}: its workspace lies outside the arena", printable(step.name));
    plan_->steps.push_back(std::move(step));
    return {};
  }

  const EntryReader& entry_;
  const int threads_;
  SharedBytes weights_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

}  // namespace

Result<std::shared_ptr<const Plan>> load_plan(const EntryReader& entry, int threads) {
  return Loading(entry, threads).run();
}

}  // namespace collage
