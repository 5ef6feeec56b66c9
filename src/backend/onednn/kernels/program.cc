#include "backend/onednn/kernels/program.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "backend/onednn/kernels/loaders.h"
#include "backend/onednn/kernels/program_code.h"
#include "base/check.h"
#include "base/integers.h"
#include "base/mapped_file.h"
#include "runtime/huge_pages.h"
#include "runtime/of_process.h"
#include "runtime/shared_constants.h"

namespace collage::onednn {

namespace {

constexpr size_t kAlignment = 64;

size_t align(size_t bytes) { return round_up(bytes, kAlignment); }

std::shared_ptr<void> constant_memory(size_t bytes) {
  Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(bytes);
  if (!memory) throw std::bad_alloc();
  return *memory;
}

// What reorders compute in, several times the weights for Winograd: kept from one to the next,
// since to clear fresh pages takes as long as the reorder. Between two the system may take it back.
class ReorderScratch {
 public:
  void reorder(const dnnl::reorder::primitive_desc& pd, dnnl::memory& from, dnnl::memory& to) {
    std::lock_guard lock(mutex_);
    const Desc pad = pd.scratchpad_desc();
    if (const size_t bytes = std::max(pad.get_size(), kLeast); bytes_ < bytes) {
      bytes_ = 0;
      block_.reset();
      block_ = constant_memory(bytes);
      bytes_ = bytes;
    }
    dnnl::memory scratch(pad, engine(), block_.get());
    dnnl::reorder(pd).execute(
        stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch}});
    ::madvise(block_.get(), bytes_, MADV_FREE);  // a hint
  }

 private:
  static constexpr size_t kLeast = size_t{8} << 20;  // has huge pages of its own
  std::mutex mutex_;
  std::shared_ptr<void> block_;
  size_t bytes_ = 0;
};

void reorder(dnnl::memory& from, dnnl::memory& to) {
  static auto* scratch = new OfProcess<ReorderScratch>();
  const dnnl::reorder::primitive_desc pd(from, to, attributes());
  if (pd.scratchpad_desc().get_size() > 0)
    scratch->get().reorder(pd, from, to);
  else
    dnnl::reorder(pd).execute(stream(), from, to);
}

// Memory objects of its own, pointed at the caller's buffers.
class Program : public Kernel {
 public:
  explicit Program(std::shared_ptr<const ProgramCode> code) : code_(std::move(code)) {
    for (const Slot& slot : code_->slots) {
      Bound& bound = bound_.emplace_back();
      bound.memory = dnnl::memory(slot.desc, engine(), DNNL_MEMORY_NONE);
      if (slot.source != Slot::Source::kConstant) continue;
      bound.current = const_cast<void*>(slot.constant.data.get());
      bound.memory.set_data_handle(bound.current);
    }
    for (const ProgramStep& step : code_->steps) {
      auto& args = args_.emplace_back();
      for (const auto& [arg, slot] : step.args) args.push_back({arg, bound_[slot].memory.get()});
    }
  }

  Status run(const KernelArgs& args) override {
    for (size_t i = 0; i < bound_.size(); ++i) {
      const Slot& slot = code_->slots[i];
      char* base = nullptr;
      switch (slot.source) {
        case Slot::Source::kInput:
          base = static_cast<char*>(args.inputs[slot.position]);
          break;
        case Slot::Source::kOutput:
          base = static_cast<char*>(args.outputs[slot.position]);
          break;
        case Slot::Source::kWorkspace:
          base = static_cast<char*>(args.workspace);
          break;
        case Slot::Source::kConstant:
          continue;
      }
      base += slot.offset;
      Bound& bound = bound_[i];
      if (bound.current == base) continue;
      if (dnnl_memory_set_data_handle(bound.memory.get(), base) != dnnl_success)
        return internal_error("onednn: a buffer was refused");
      bound.current = base;
    }
    for (size_t s = 0; s < args_.size(); ++s) {
      const ProgramStep& step = code_->steps[s];
      if (!step.primitive) {
        std::memset(args.outputs[step.clear_position], 0, step.clear_bytes);
        continue;
      }
      dnnl_status_t status = dnnl_primitive_execute(
          step.primitive.get(), stream().get(), static_cast<int>(args_[s].size()), args_[s].data());
      if (status != dnnl_success)
        return internal_error("onednn: execution failed with status {}", static_cast<int>(status));
    }
    return {};
  }
  size_t workspace_bytes() const override { return code_->temporaries + code_->scratchpad; }
  size_t constant_bytes() const override { return code_->constant_bytes(); }
  Result<std::shared_ptr<Kernel>> twin() const override {
    return guarded("a twin", [&]() -> Result<std::shared_ptr<Kernel>> {
      return std::shared_ptr<Kernel>(std::make_shared<Program>(code_));
    });
  }
  Result<SavedKernel> save() const override { return save_program(*code_); }

 private:
  struct Bound {
    dnnl::memory memory;
    void* current = nullptr;  // where it points now
  };

  std::shared_ptr<const ProgramCode> code_;
  std::vector<Bound> bound_;                        // of each slot
  std::vector<std::vector<dnnl_exec_arg_t>> args_;  // of each step
};

Value add_slot(ProgramCode& code, Slot slot) {
  code.slots.push_back(std::move(slot));
  return {code.slots.size() - 1};
}

// A scratchpad's offset until the temporaries are known.
constexpr size_t kBehindTemporaries = SIZE_MAX;

}  // namespace

size_t ProgramCode::constant_bytes() const {
  size_t bytes = 0;
  for (const Slot& slot : slots) bytes += slot.constant.bytes;
  return bytes;
}

std::unique_ptr<Kernel> make_program(std::shared_ptr<const ProgramCode> code) {
  return std::make_unique<Program>(std::move(code));
}

ProgramBuilder::ProgramBuilder() : code_(std::make_unique<ProgramCode>()) {}
ProgramBuilder::~ProgramBuilder() = default;

Value ProgramBuilder::input(size_t position, const Desc& desc, size_t byte_offset) {
  return add_slot(*code_, {Slot::Source::kInput, position, byte_offset, desc});
}

Value ProgramBuilder::output(size_t position, const Desc& desc, size_t byte_offset) {
  return add_slot(*code_, {Slot::Source::kOutput, position, byte_offset, desc});
}

Value ProgramBuilder::temporary(const Desc& desc) {
  size_t offset = code_->temporaries;
  code_->temporaries += align(desc.get_size());
  return add_slot(*code_, {Slot::Source::kWorkspace, 0, offset, desc});
}

Value ProgramBuilder::view(Value temporary, const Desc& desc) {
  const Slot& slot = code_->slots[temporary.index];
  COLLAGE_CHECK(slot.source == Slot::Source::kWorkspace && desc.get_size() <= slot.desc.get_size(),
                "not a view of a temporary");
  return add_slot(*code_, {Slot::Source::kWorkspace, 0, slot.offset, desc});
}

Value ProgramBuilder::constant(const Tensor& tensor, const Desc& given, const Desc& wanted) {
  Slot slot{Slot::Source::kConstant, 0, 0, wanted};
  slot.constant.bytes = wanted.get_size();
  if (given == wanted && !lies_in_mapped_file(tensor.raw())) {
    // The kernel shares the model's own bytes: unpacked constants cost no memory twice.
    auto holder = std::make_shared<Tensor>(shared_constant(tensor));
    slot.constant.data = {holder, holder->raw()};
  } else {
    std::shared_ptr<void> packed = constant_memory(wanted.get_size());
    dnnl::memory from(given, engine(), const_cast<void*>(tensor.raw()));
    dnnl::memory to(wanted, engine(), packed.get());
    reorder(from, to);
    slot.constant = shared_constant({std::move(packed), slot.constant.bytes});
  }
  return add_slot(*code_, std::move(slot));
}

void ProgramBuilder::add(const dnnl::primitive& primitive, const Desc& scratchpad,
                         const Bindings& bindings, const Masks& masks) {
  ProgramStep step;
  step.primitive = primitive;
  step.masks = masks;
  for (const auto& [arg, value] : bindings) step.args.emplace_back(arg, value.index);
  if (size_t bytes = scratchpad.get_size()) {
    code_->scratchpad = std::max(code_->scratchpad, align(bytes));
    Value pad = add_slot(*code_, {Slot::Source::kWorkspace, 0, kBehindTemporaries, scratchpad});
    step.args.emplace_back(DNNL_ARG_SCRATCHPAD, pad.index);
  }
  code_->steps.push_back(std::move(step));
}

void ProgramBuilder::clear_output(size_t position, size_t bytes) {
  ProgramStep step;
  step.clear_position = position;
  step.clear_bytes = bytes;
  code_->steps.push_back(std::move(step));
}

std::unique_ptr<Kernel> ProgramBuilder::finish() {
  for (Slot& slot : code_->slots)
    if (slot.offset == kBehindTemporaries) slot.offset = code_->temporaries;
  return make_program(std::move(code_));
}

void register_loaders() {
  register_kernel_loader({"onednn", library_version() + "/2", load_program, true});
}

}  // namespace collage::onednn
