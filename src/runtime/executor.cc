#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/no_exceptions.h"
#include "runtime/awaited_steps.h"
#include "runtime/device_tensors.h"
#include "runtime/huge_pages.h"
#include "runtime/run_number.h"

namespace collage {

namespace {

bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kArenaAlignment == 0;
}

Status check_tensor(const Tensor& tensor, const PlanSignature& wanted, const char* role) {
  if (tensor.shape() == wanted.type.shape && tensor.dtype() == wanted.type.dtype) {
    if (tensor.raw() != nullptr || tensor.bytes() == 0) return {};
    return bad_model("{} '{}': the tensor has no data", role, wanted.name);
  }
  return bad_model("{} '{}': expected {} {}, got {} {}", role, wanted.name,
                   dtype_name(wanted.type.dtype), shape_to_string(wanted.type.shape),
                   dtype_name(tensor.dtype()), shape_to_string(tensor.shape()));
}

}  // namespace

Result<Executor> Executor::create(std::shared_ptr<const Plan> plan, int threads) {
  Kernels kernels;
  for (const Step& step : plan->steps) kernels.push_back(step.kernel);
  return create(std::move(plan), threads, std::move(kernels));
}

Result<Executor> Executor::create_beside(std::shared_ptr<const Plan> plan, int threads) {
  Kernels kernels;
  for (const Step& step : plan->steps) {
    std::shared_ptr<Kernel> twin = TRY(step.kernel->twin().with_context(
        step.target.empty() ? step.name : step.name + " (" + step.target + ")"));
    kernels.push_back(twin != nullptr ? std::move(twin) : step.kernel);
  }
  return create(std::move(plan), threads, std::move(kernels));
}

Result<Executor> Executor::create(std::shared_ptr<const Plan> plan, int threads, Kernels kernels) {
  std::vector<Arena> arenas;
  arenas.push_back({{}, nullptr, TRY(allocate_on_huge_pages(plan->arena_bytes))});
  for (const DeviceArena& wanted : plan->device_arenas) {
    DeviceMemory* memory = TRY(require_device_memory(wanted.device));
    arenas.push_back({wanted.device, memory, TRY(memory->allocate(wanted.bytes))});
  }
  return Executor(std::move(plan), std::move(arenas), threads, std::move(kernels));
}

Executor::Executor(std::shared_ptr<const Plan> plan, std::vector<Arena> arenas, int threads,
                   Kernels kernels)
    : plan_(std::move(plan)),
      arenas_(std::move(arenas)),
      kernels_(std::move(kernels)),
      team_(threads),
      running_(std::make_unique<OfProcess<std::mutex>>()),
      input_slots_(plan_->inputs.size()),
      output_slots_(plan_->outputs.size()) {
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const Step& step = plan_->steps[s];
    bound_.push_back({kernels_[s].get(), std::vector<void*>(step.inputs.size()),
                      std::vector<void*>(step.outputs.size()),
                      in_arena(memory_device(step.device), step.workspace_offset)});
    for (size_t i = 0; i < step.inputs.size(); ++i)
      find_slot(plan_->buffers[step.inputs[i]], &bound_[s].inputs[i]);
    for (size_t i = 0; i < step.outputs.size(); ++i)
      find_slot(plan_->buffers[step.outputs[i]], &bound_[s].outputs[i]);
    ThreadUse use = step.kernel->thread_use();
    if (groups_.empty() || groups_.back().use != use)
      groups_.push_back({bound_.size() - 1, bound_.size() - 1, use});
    groups_.back().end = bound_.size();
  }
  std::vector<std::vector<size_t>> awaited = awaited_steps(*plan_);
  for (size_t s = 0; s < bound_.size(); ++s) {
    bound_[s].awaited = std::move(awaited[s]);
    const auto* kernel = dynamic_cast<const CoreKernel*>(bound_[s].kernel);
    if (kernel == nullptr) continue;
    beside_.push_back(s);
    bound_[s].task = std::make_unique<CoreTask>(
        [all = bound_.data(), s, own = kernel->kernel().get()] { return run_step(all, s, *own); });
  }
  uses_team_ = std::any_of(groups_.begin(), groups_.end(),
                           [](const Group& group) { return group.use == ThreadUse::kTeam; });
  find_transfers();
  staged_inputs_.resize(plan_->inputs.size());
  is_staged_.resize(plan_->outputs.size());
  staged_outputs_.resize(plan_->outputs.size());
}

void* Executor::in_arena(const VirtualDevice& device, size_t offset) const {
  const auto arena = std::find_if(arenas_.begin(), arenas_.end(),
                                  [&](const Arena& a) { return a.device == device; });
  return arena == arenas_.end() ? nullptr : static_cast<uint8_t*>(arena->begin.get()) + offset;
}

// What lies in the arenas or is constant has its place for good.
void Executor::find_slot(const Buffer& buffer, void** pointer) {
  const bool is_part = buffer.place == Buffer::Place::kPart;
  const Buffer& whole = is_part ? plan_->buffers[buffer.index] : buffer;
  const size_t offset = is_part ? buffer.offset : 0;
  switch (whole.place) {
    case Buffer::Place::kInput:
      input_slots_[whole.index].push_back({pointer, offset});
      break;
    case Buffer::Place::kOutput:
      output_slots_[whole.index].push_back({pointer, offset});
      break;
    case Buffer::Place::kArena:
      *pointer = in_arena(whole.encoding.device, whole.offset + offset);
      break;
    case Buffer::Place::kConstant:
      *pointer = static_cast<uint8_t*>(const_cast<void*>(whole.constant.raw())) + offset;
      break;
    case Buffer::Place::kPart:
      COLLAGE_CHECK(false, "a part of a part");
  }
}

void Executor::find_transfers() {
  const std::vector<Buffer>& buffers = plan_->buffers;
  std::vector<size_t> writers(buffers.size());  // of each buffer, and of parts of it
  const auto whole = [&](BufferId id) {
    return buffers[id].place == Buffer::Place::kPart ? buffers[id].index : id;
  };
  for (const Step& step : plan_->steps)
    for (const BufferId output : step.outputs) ++writers[whole(output)];
  const auto is_on_device = [&](BufferId id) {
    return buffers[id].place == Buffer::Place::kArena &&
           !is_host_memory(buffers[id].encoding.device) && writers[id] == 1;
  };
  std::vector<bool> taken(buffers.size());
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const Step& step = plan_->steps[s];
    if (!step.target.empty() || step.inputs.size() != 1 || step.outputs.size() != 1) continue;
    const BufferId from = step.inputs[0], to = step.outputs[0];
    const Encoding &given = buffers[from].encoding, &made = buffers[to].encoding;
    if (given.dtype != made.dtype || !(given.layout == made.layout)) continue;
    if (buffers[from].place == Buffer::Place::kInput && is_on_device(to)) {
      to_devices_.push_back({s, buffers[from].index, to});
      taken[to] = true;
    } else if (buffers[to].place == Buffer::Place::kOutput && is_on_device(from) && !taken[from] &&
               output_slots_[buffers[to].index].size() == 1) {
      from_devices_.push_back({s, buffers[to].index, from});
      taken[from] = true;
    }
  }
  for (std::vector<Transfer>* transfers : {&to_devices_, &from_devices_})
    for (Transfer& transfer : *transfers)
      for (size_t s = 0; s < bound_.size(); ++s) {
        const auto add = [&](const std::vector<BufferId>& ids, std::vector<void*>& pointers) {
          for (size_t i = 0; i < ids.size(); ++i) {
            if (whole(ids[i]) != transfer.buffer) continue;
            const bool is_part = ids[i] != transfer.buffer;
            transfer.slots.push_back({&pointers[i], is_part ? buffers[ids[i]].offset : 0});
          }
        };
        add(plan_->steps[s].inputs, bound_[s].inputs);
        add(plan_->steps[s].outputs, bound_[s].outputs);
      }
}

void Executor::use(const Transfer& transfer, const Tensor& given, const VirtualDevice& place) {
  const Buffer& buffer = plan_->buffers[transfer.buffer];
  bool& is_left_out = bound_[transfer.step].is_left_out;
  if (buffer.encoding.device == place) {
    is_left_out = true;
    Executor::place(transfer.slots, const_cast<void*>(given.raw()));
  } else if (is_left_out) {
    is_left_out = false;
    Executor::place(transfer.slots, in_arena(buffer.encoding.device, buffer.offset));
  }
}

// Those that the caller gave.
Status Executor::check_apart(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  const auto lies = [](std::span<const Tensor> tensors, std::vector<TensorMemory>& memory) {
    memory.clear();
    for (const Tensor& tensor : tensors) memory.push_back(memory_of(tensor));
  };
  lies(inputs, input_memory_);
  lies(outputs, output_memory_);
  return check_outputs_apart(
      input_memory_, output_memory_, [&](size_t i) { return plan_->inputs[i].name; },
      [&](size_t i) { return plan_->outputs[i].name; });
}

Status Executor::bind(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (inputs.size() != plan_->inputs.size() || outputs.size() != plan_->outputs.size())
    return bad_model("the program takes {} inputs and gives {} outputs, not {} and {}",
                     plan_->inputs.size(), plan_->outputs.size(), inputs.size(), outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    TRY(check_tensor(inputs[i], plan_->inputs[i], "input"));
  TRY(check_apart(inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = plan_->outputs[i].type;
    if (!outputs[i].defined()) outputs[i] = TRY(Tensor::allocate(type.dtype, type.shape));
    TRY(check_tensor(outputs[i], plan_->outputs[i], "output"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) TRY(bind_input(i, inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i) TRY(bind_output(i, outputs[i]));
  return {};
}

Status Executor::bind_input(size_t i, const Tensor& given) {
  const std::optional<PlaceOnDevice> on = place_of(given);
  size_t left_out = 0;
  for (const Transfer& transfer : to_devices_) {
    if (transfer.index != i) continue;
    use(transfer, given, on ? on->device : VirtualDevice());
    left_out += bound_[transfer.step].is_left_out;
  }
  void* memory = const_cast<void*>(given.raw());
  if ((on && left_out < input_slots_[i].size()) || (!on && !is_aligned(memory))) {
    Tensor& staged = staged_inputs_[i];
    if (!staged.defined()) staged = TRY(Tensor::allocate(given.dtype(), given.shape()));
    if (on) {
      TRY(on->memory->read(staged.raw(), given.raw(), given.bytes()));
    } else {
      std::memcpy(staged.raw(), given.raw(), given.bytes());
    }
    memory = staged.raw();
  }
  place_input(i, memory);
  return {};
}

Status Executor::bind_output(size_t i, const Tensor& given) {
  const std::optional<PlaceOnDevice> on = place_of(given);
  bool is_in_place = !on && is_aligned(given.raw());
  for (const Transfer& transfer : from_devices_) {
    if (transfer.index != i) continue;
    use(transfer, given, on ? on->device : VirtualDevice());
    is_in_place |= bound_[transfer.step].is_left_out;
  }
  is_staged_[i] = !is_in_place;
  Tensor& staged = staged_outputs_[i];
  if (is_staged_[i] && !staged.defined())
    staged = TRY(Tensor::allocate(given.dtype(), given.shape()));
  place_output(i, is_staged_[i] ? staged.raw() : const_cast<void*>(given.raw()));
  return {};
}

Status Executor::execute(std::vector<double>* seconds) {
  using Clock = std::chrono::steady_clock;
  Status status;
  size_t begun = 0;  // steps
  auto run_group = [&](const Group& group) {
    for (size_t s = group.begin; s < group.end; ++s) {
      Bound& bound = bound_[s];
      auto begin = seconds ? Clock::now() : Clock::time_point();
      ++begun;
      if (bound.is_left_out) continue;
      if (bound.task != nullptr) {
        static_cast<CoreKernel*>(bound.kernel)->begin(*bound.task);
        if (seconds) status = bound.task->wait();
      } else {
        status = run_step(bound_.data(), s, *bound.kernel);
      }
      if (seconds && status.ok()) status = bound.kernel->finish();
      if (seconds) (*seconds)[s] = std::chrono::duration<double>(Clock::now() - begin).count();
      if (!status.ok()) {
        status = std::move(status).with_context(plan_->steps[s].name);
        return;
      }
    }
  };
  for (const Group& group : groups_) {
    if (group.use == ThreadUse::kOwnPool) {
      team_.park([&] { run_group(group); });
    } else {
      run_group(group);
    }
    if (!status.ok()) break;
  }
  // Whatever was begun uses the arenas. What a step waited for failed before it.
  Status tasks;
  for (const size_t s : beside_) {
    if (s >= begun) break;
    Status done = bound_[s].task->wait();
    if (tasks.ok()) tasks = std::move(done).with_context(plan_->steps[s].name);
  }
  const Status done = synchronise();
  if (!tasks.ok()) return tasks;
  return status.ok() ? done : status;
}

Status Executor::run_step(const Bound* all, size_t s, Kernel& kernel) {
  for (const size_t earlier : all[s].awaited) TRY(all[earlier].task->wait());
  return kernel.run(all[s].args());
}

Status Executor::synchronise() {
  Status status;
  for (const Arena& arena : arenas_)
    if (arena.memory != nullptr) {
      Status done = arena.memory->synchronise();
      if (status.ok()) status = std::move(done).with_context(device_text(arena.device));
    }
  return status;
}

ThreadTeam* Executor::team() {
  const bool own = std::any_of(groups_.begin(), groups_.end(),
                               [](const Group& group) { return group.use == ThreadUse::kOwnPool; });
  return own ? nullptr : &team_;
}

template <typename Body>
Status Executor::run_alone(const Body& body) {
  const std::lock_guard lock(running_->get());
  // Backends promise not to throw.
  return run_with_team(uses_team_ ? team_.size() : 1, [&] { return without_exceptions(body); });
}

Status Executor::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  return run(inputs, outputs, nullptr);
}

Status Executor::run_next(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  return run(inputs, outputs, nullptr, &runs_);
}

Status Executor::run_as(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                        std::optional<uint64_t> number) {
  return run(inputs, outputs, nullptr, number ? &*number : nullptr);
}

Status Executor::run_profiled(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                              std::vector<double>& seconds) {
  return run(inputs, outputs, &seconds);
}

Status Executor::walk(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                      const RunKernel& run_kernel) {
  return run_alone([&]() -> Status {
    TRY(bind(inputs, outputs));
    for (size_t s = 0; s < bound_.size(); ++s) {
      Bound& bound = bound_[s];
      if (bound.is_left_out) continue;
      TRY(run_kernel(s, bound.args()).with_context(plan_->steps[s].name));
    }
    TRY(synchronise());
    return give_outputs(outputs);
  });
}

Status Executor::run(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     std::vector<double>* seconds, uint64_t* next_number) {
  return run_alone([&]() -> Status {
    const RunNumber number(next_number != nullptr ? std::optional((*next_number)++) : std::nullopt);
    if (seconds != nullptr) seconds->assign(plan_->steps.size(), 0.0);
    TRY(bind(inputs, outputs));
    TRY(execute(seconds));
    return give_outputs(outputs);
  });
}

Status Executor::give_outputs(std::span<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_staged_[i]) continue;
    const void* made = staged_outputs_[i].raw();
    if (const std::optional<PlaceOnDevice> on = place_of(outputs[i])) {
      TRY(on->memory->write(outputs[i].raw(), made, outputs[i].bytes()));
      TRY(on->memory->synchronise());
    } else {
      std::memcpy(outputs[i].raw(), made, outputs[i].bytes());
    }
  }
  return {};
}

}  // namespace collage
