// Programs saved and loaded: slots and steps as they are. A slot whose descriptor is an
// implementation's own takes it from the step that reads it.
#include <algorithm>

#include "backend/onednn/kernels/program_code.h"
#include "backend/onednn/kernels/saved_desc.h"
#include "backend/onednn/kernels/saved_primitive.h"
#include "base/integers.h"
#include "runtime/saved_fields.h"
#include "runtime/thread_team.h"

namespace collage::onednn {

using nlohmann::json;

namespace {

constexpr size_t kMostSlots = 1 << 20;

// Whether primitives that have this argument write it.
bool is_written(int arg) {
  for (const int written : {DNNL_ARG_DST, DNNL_ARG_DST_1, DNNL_ARG_DST_2, DNNL_ARG_MEAN,
                            DNNL_ARG_VARIANCE, DNNL_ARG_WORKSPACE, DNNL_ARG_SCRATCHPAD})
    if (arg == written) return true;
  return false;
}

Result<json> save_step(const ProgramStep& step) {
  json saved = json::object();
  if (step.primitive) {
    saved["primitive"] = TRY(save_primitive(step.primitive, step.masks));
    saved["args"] = json::array();
    for (const auto& [arg, slot] : step.args) saved["args"].push_back({arg, slot});
  } else {
    saved["clear"] = {step.clear_position, step.clear_bytes};
  }
  return saved;
}

// The descriptor from the slot's first reader, where it has no description.
Result<json> save_slot_desc(const ProgramCode& code, size_t slot) {
  const Desc& desc = code.slots[slot].desc;
  Result<json> saved = save_desc(desc, false);
  if (saved.ok()) return saved;
  for (size_t s = 0; s < code.steps.size(); ++s)
    for (const auto& [arg, index] : code.steps[s].args)
      if (index == slot && argument_desc(code.steps[s].primitive, arg) == desc)
        return json{{"of_step", s}, {"arg", arg}};
  return saved;
}

class Loading {
 public:
  explicit Loading(const SavedKernel& saved) : saved_(saved) {}

  Result<std::shared_ptr<Kernel>> run() {
    const json description = TRY(description_object(saved_.description));
    const JsonFields fields(description);
    const auto number = [&](const char* name) { return fields.integer(name, 0, most_bytes()); };
    code_->temporaries = static_cast<size_t>(TRY(number("temporaries")));
    code_->scratchpad = static_cast<size_t>(TRY(number("scratchpad")));
    const json &slots = *TRY(fields.array("slots")), &steps = *TRY(fields.array("steps"));
    if (slots.size() > kMostSlots) return bad_model("onednn: {} values", slots.size());
    slots_ = slots.size();
    for (const json& step : steps) TRY(add_step(step));
    for (const json& slot : slots) TRY(add_slot(slot));
    for (const ProgramStep& step : code_->steps) TRY(check_step(step));
    return std::shared_ptr<Kernel>(make_program(code_));
  }

 private:
  Result<std::vector<int64_t>> numbers(const JsonFields& fields, const char* name, size_t count) {
    std::vector<int64_t> found = TRY(integers_from(fields, name, 0, most_bytes(), count));
    if (found.size() != count) return bad_model("onednn: '{}' of {} numbers", name, found.size());
    return found;
  }

  Status add_step(const json& saved) {
    const JsonFields fields(saved);
    ProgramStep& step = code_->steps.emplace_back();
    if (fields.has("primitive")) {
      const json& primitive = *TRY(fields.object("primitive"));
      step.primitive = TRY(load_primitive(primitive));
      step.masks = TRY(load_masks(primitive));
      for (const json& arg : *TRY(fields.array("args"))) {
        const json wrapped = {{"arg", arg}};
        const std::vector<int64_t> pair = TRY(numbers(JsonFields(wrapped), "arg", 2));
        if (pair[0] > INT32_MAX || static_cast<size_t>(pair[1]) >= slots_)
          return bad_model("onednn: an argument of no value");
        step.args.emplace_back(static_cast<int>(pair[0]), static_cast<size_t>(pair[1]));
      }
    } else {
      const std::vector<int64_t> n = TRY(numbers(fields, "clear", 2));
      step.clear_position = static_cast<size_t>(n[0]);
      step.clear_bytes = static_cast<size_t>(n[1]);
    }
    return {};
  }

  Result<Desc> desc_from(const json& saved) {
    const JsonFields fields(saved);
    if (!fields.has("of_step")) return load_desc(saved);
    const auto step = static_cast<size_t>(TRY(fields.integer("of_step", 0, INT32_MAX)));
    const int64_t arg = TRY(fields.integer("arg", 0, INT32_MAX));
    if (step >= code_->steps.size() || !code_->steps[step].primitive)
      return bad_model("onednn: a value of no step");
    return argument_desc(code_->steps[step].primitive, static_cast<int>(arg));
  }

  Status add_slot(const json& saved) {
    const JsonFields fields(saved);
    Slot slot;
    slot.source = static_cast<Slot::Source>(TRY(fields.integer("source", 0, 3)));
    slot.position = static_cast<size_t>(TRY(fields.integer("position", 0, 1 << 20)));
    slot.offset = static_cast<size_t>(TRY(fields.integer("offset", 0, most_bytes())));
    slot.desc = TRY(desc_from(*TRY(fields.object("desc"))));
    const size_t bytes =
        slot.source == Slot::Source::kConstant ? slot.desc.get_size() : reach_of(slot.desc);
    const size_t workspace = code_->temporaries + code_->scratchpad;
    switch (slot.source) {
      case Slot::Source::kInput:
        TRY(saved_.buffers.input_holds(slot.position, slot.offset + bytes));
        room_.push_back(saved_.buffers.inputs[slot.position] - slot.offset);
        break;
      case Slot::Source::kOutput:
        TRY(saved_.buffers.output_holds(slot.position, slot.offset + bytes));
        room_.push_back(saved_.buffers.outputs[slot.position] - slot.offset);
        break;
      case Slot::Source::kWorkspace:
        if (slot.offset > workspace || bytes > workspace - slot.offset)
          return bad_model("onednn: a value beyond the workspace");
        room_.push_back(workspace - slot.offset);
        break;
      case Slot::Source::kConstant:
        if (next_ == saved_.constants.size() || saved_.constants[next_].bytes < bytes)
          return bad_model("onednn: a constant of {} bytes is not there", bytes);
        slot.constant = saved_.constants[next_++];
        room_.push_back(slot.constant.bytes);
        break;
    }
    code_->slots.push_back(std::move(slot));
    return {};
  }

  // Inputs are not, nor constants, which may lie in a file's pages.
  Status may_write(size_t slot) const {
    const Slot::Source source = code_->slots[slot].source;
    if (source == Slot::Source::kOutput || source == Slot::Source::kWorkspace) return {};
    return bad_model("onednn: a step that writes an input or a constant");
  }

  // That there are as many scales and zero points as the primitive reads.
  Status check_masks(const ProgramStep& step) const {
    constexpr int kOfArgument = ~(DNNL_ARG_ATTR_SCALES | DNNL_ARG_ATTR_ZERO_POINTS);
    for (const auto& [arg, mask] : step.masks) {
      const auto is_it = [wanted = arg](const auto& entry) { return entry.first == wanted; };
      const auto given = std::find_if(step.args.begin(), step.args.end(), is_it);
      int64_t numbers = 1;
      const Dims dims = argument_desc(step.primitive, arg & kOfArgument).get_dims();
      for (size_t d = 0; d < dims.size(); ++d)
        if ((mask >> d & 1) != 0) numbers *= dims[d];
      if (given == step.args.end() ||
          room_[given->second] < static_cast<size_t>(numbers) * sizeof(float))
        return bad_model("onednn: scales or zero points are missing");
    }
    return {};
  }

  // That the step stays within what its values have room for, and writes no others.
  Status check_step(const ProgramStep& step) const {
    if (step.primitive) {
      for (const auto& [arg, slot] : step.args) {
        if (reach_of(argument_desc(step.primitive, arg)) > room_[slot])
          return bad_model("onednn: an argument of more bytes than its value has");
        if (is_written(arg)) TRY(may_write(slot));
      }
      const auto is_scratchpad = [](const auto& entry) {
        return entry.first == DNNL_ARG_SCRATCHPAD;
      };
      if (argument_desc(step.primitive, DNNL_ARG_SCRATCHPAD).get_size() > 0 &&
          std::none_of(step.args.begin(), step.args.end(), is_scratchpad))
        return bad_model("onednn: a step lacks the memory that it computes in");
      return check_masks(step);
    }
    return saved_.buffers.output_holds(step.clear_position, step.clear_bytes);
  }

  const SavedKernel& saved_;
  std::shared_ptr<ProgramCode> code_ = std::make_shared<ProgramCode>();
  size_t slots_ = 0, next_ = 0;
  std::vector<size_t> room_;  // bytes from where each slot begins to the end of what holds it
};

}  // namespace

Result<SavedKernel> save_program(const ProgramCode& code) {
  return guarded("saving", [&]() -> Result<SavedKernel> {
    SavedKernel saved;
    saved.loader = "onednn";
    json slots = json::array(), steps = json::array();
    for (const ProgramStep& step : code.steps) steps.push_back(TRY(save_step(step)));
    for (size_t i = 0; i < code.slots.size(); ++i) {
      const Slot& slot = code.slots[i];
      slots.push_back({{"source", static_cast<int>(slot.source)},
                       {"position", slot.position},
                       {"offset", slot.offset},
                       {"desc", TRY(save_slot_desc(code, i))}});
      if (slot.source == Slot::Source::kConstant) saved.constants.push_back(slot.constant);
    }
    saved.description = json{
        {"slots", std::move(slots)},
        {"steps", std::move(steps)},
        {"temporaries", code.temporaries},
        {"scratchpad",
         code.scratchpad}}.dump();
    return saved;
  });
}

Result<std::shared_ptr<Kernel>> load_program(const SavedKernel& saved, int threads) {
  const TeamScope team(threads);
  return guarded("loading", [&] { return Loading(saved).run(); });
}

}  // namespace collage::onednn
