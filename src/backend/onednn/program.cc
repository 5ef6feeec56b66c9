#include "backend/onednn/program.h"

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/integers.h"
#include "runtime/huge_pages.h"

namespace collage::onednn {

namespace {

constexpr size_t kAlignment = 64;

size_t align(size_t bytes) { return round_up(bytes, kAlignment); }

std::shared_ptr<void> constant_memory(size_t bytes) {
  Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(bytes);
  if (!memory) throw std::bad_alloc();
  return *memory;
}

enum class Source { kInput, kOutput, kWorkspace, kConstant };

struct Slot {
  Source source;
  size_t position = 0;  // of the input or output
  size_t offset = 0;    // bytes into the buffer or the workspace
  dnnl::memory memory;
  void* current = nullptr;  // where the memory object points now
  std::shared_ptr<void> owner;
};

struct Step {
  dnnl::primitive primitive;
  std::vector<dnnl_exec_arg_t> args;
  // A step without a primitive calls a function, or zeroes an output.
  std::function<void(const void*, void*)> call = {};
  size_t source = 0, target = 0;  // slots of the call
  size_t clear_position = 0;
  size_t clear_bytes = 0;
};

}  // namespace

class Program : public Kernel {
 public:
  Status run(const KernelArgs& args) override {
    for (Slot& slot : slots) {
      char* base = nullptr;
      switch (slot.source) {
        case Source::kInput:
          base = static_cast<char*>(args.inputs[slot.position]);
          break;
        case Source::kOutput:
          base = static_cast<char*>(args.outputs[slot.position]);
          break;
        case Source::kWorkspace:
          base = static_cast<char*>(args.workspace);
          break;
        case Source::kConstant:
          continue;
      }
      base += slot.offset;
      if (slot.current == base) continue;
      if (dnnl_memory_set_data_handle(slot.memory.get(), base) != dnnl_success)
        return internal_error("onednn: a buffer was refused");
      slot.current = base;
    }
    for (const Step& step : steps) {
      if (step.call) {
        step.call(slots[step.source].current, slots[step.target].current);
        continue;
      }
      if (!step.primitive) {
        std::memset(args.outputs[step.clear_position], 0, step.clear_bytes);
        continue;
      }
      dnnl_status_t status =
          dnnl_primitive_execute(step.primitive.get(), stream().get(),
                                 static_cast<int>(step.args.size()), step.args.data());
      if (status != dnnl_success)
        return internal_error("onednn: execution failed with status {}", static_cast<int>(status));
    }
    return {};
  }
  size_t workspace_bytes() const override { return temporaries + scratchpad; }
  size_t constant_bytes() const override { return constants; }

  std::vector<Slot> slots;
  std::vector<Step> steps;
  size_t temporaries = 0;  // the workspace: temporaries, then one scratchpad that all steps share
  size_t scratchpad = 0;
  size_t constants = 0;
  std::vector<size_t> scratchpads;  // slots, placed when the temporaries are known
};

ProgramBuilder::ProgramBuilder() : program_(std::make_unique<Program>()) {}
ProgramBuilder::~ProgramBuilder() = default;

namespace {
Value add_slot(std::vector<Slot>& slots, Slot slot) {
  slots.push_back(std::move(slot));
  return {slots.size() - 1};
}
dnnl::memory unbound(const Desc& desc) { return dnnl::memory(desc, engine(), DNNL_MEMORY_NONE); }
}  // namespace

Value ProgramBuilder::input(size_t position, const Desc& desc, size_t byte_offset) {
  return add_slot(program_->slots, {Source::kInput, position, byte_offset, unbound(desc), {}, {}});
}

Value ProgramBuilder::output(size_t position, const Desc& desc, size_t byte_offset) {
  return add_slot(program_->slots, {Source::kOutput, position, byte_offset, unbound(desc), {}, {}});
}

Value ProgramBuilder::temporary(const Desc& desc) {
  size_t offset = program_->temporaries;
  program_->temporaries += align(desc.get_size());
  return add_slot(program_->slots, {Source::kWorkspace, 0, offset, unbound(desc), {}, {}});
}

Value ProgramBuilder::view(Value temporary, const Desc& desc) {
  const Slot& slot = program_->slots[temporary.index];
  COLLAGE_CHECK(
      slot.source == Source::kWorkspace && desc.get_size() <= slot.memory.get_desc().get_size(),
      "not a view of a temporary");
  return add_slot(program_->slots, {Source::kWorkspace, 0, slot.offset, unbound(desc), {}, {}});
}

Value ProgramBuilder::constant(const Tensor& tensor, const Desc& given, const Desc& wanted) {
  Slot slot{Source::kConstant, 0, 0, unbound(wanted), {}, {}};
  program_->constants += wanted.get_size();
  if (given == wanted) {
    // The kernel shares the model's own bytes: unpacked constants cost no memory twice.
    slot.owner = std::make_shared<Tensor>(tensor);
    slot.memory.set_data_handle(const_cast<void*>(tensor.raw()));
  } else {
    slot.owner = constant_memory(wanted.get_size());
    slot.memory.set_data_handle(slot.owner.get());
    dnnl::memory from(given, engine(), const_cast<void*>(tensor.raw()));
    dnnl::reorder(from, slot.memory).execute(stream(), from, slot.memory);
  }
  return add_slot(program_->slots, std::move(slot));
}

void ProgramBuilder::add(const dnnl::primitive& primitive, const Desc& scratchpad,
                         const Bindings& bindings) {
  Step step;
  step.primitive = primitive;
  for (const auto& [arg, value] : bindings)
    step.args.push_back({arg, program_->slots[value.index].memory.get()});
  if (size_t bytes = scratchpad.get_size()) {
    program_->scratchpad = std::max(program_->scratchpad, align(bytes));
    Value pad = add_slot(program_->slots, {Source::kWorkspace, 0, 0, unbound(scratchpad), {}, {}});
    program_->scratchpads.push_back(pad.index);
    step.args.push_back({DNNL_ARG_SCRATCHPAD, program_->slots[pad.index].memory.get()});
  }
  program_->steps.push_back(std::move(step));
}

void ProgramBuilder::add_call(Value source, Value target,
                              std::function<void(const void*, void*)> call) {
  Step step;
  step.call = std::move(call);
  step.source = source.index;
  step.target = target.index;
  program_->steps.push_back(std::move(step));
}

void ProgramBuilder::clear_output(size_t position, size_t bytes) {
  Step step;
  step.clear_position = position;
  step.clear_bytes = bytes;
  program_->steps.push_back(std::move(step));
}

std::unique_ptr<Kernel> ProgramBuilder::finish() {
  for (size_t index : program_->scratchpads) program_->slots[index].offset = program_->temporaries;
  return std::move(program_);
}

}  // namespace collage::onednn
