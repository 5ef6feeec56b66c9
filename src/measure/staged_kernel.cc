#include "measure/staged_kernel.h"

#include <algorithm>

namespace collage {

Result<std::vector<StagedKernel::Argument>> StagedKernel::stage(
    const std::vector<TensorType>& types, const std::vector<Encoding>& encodings) {
  std::vector<Argument> result(encodings.size());
  for (size_t i = 0; i < encodings.size(); ++i) {
    const Encoding& encoding = encodings[i];
    if (is_host_memory(encoding.device)) continue;
    Argument& argument = result[i];
    argument.bytes = encoding.layout.physical_bytes(types[i].shape, encoding.dtype);
    argument.memory = TRY(require_device_memory(encoding.device));
    argument.staged = TRY(argument.memory->allocate(argument.bytes));
  }
  return result;
}

Result<std::shared_ptr<Kernel>> StagedKernel::around(std::shared_ptr<Kernel> kernel,
                                                     const Variant& variant,
                                                     const std::vector<TensorType>& inputs,
                                                     const std::vector<TensorType>& outputs,
                                                     const VirtualDevice& device) {
  auto staged = std::make_shared<StagedKernel>();
  staged->inputs_ = TRY(stage(inputs, variant.inputs));
  staged->outputs_ = TRY(stage(outputs, variant.outputs));
  if (const size_t bytes = kernel->workspace_bytes(); bytes > 0 && !is_host_memory(device)) {
    staged->workspace_.memory = TRY(require_device_memory(device));
    staged->workspace_.staged = TRY(staged->workspace_.memory->allocate(bytes));
  }
  const auto on_host = [](const Argument& argument) { return argument.memory == nullptr; };
  if (on_host(staged->workspace_) &&
      std::all_of(staged->inputs_.begin(), staged->inputs_.end(), on_host) &&
      std::all_of(staged->outputs_.begin(), staged->outputs_.end(), on_host))
    return kernel;
  staged->kernel_ = std::move(kernel);
  return std::shared_ptr<Kernel>(std::move(staged));
}

size_t StagedKernel::workspace_bytes() const {
  return workspace_.memory != nullptr ? 0 : kernel_->workspace_bytes();
}

Status StagedKernel::write(const std::vector<Argument>& to, void* const* from) {
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i].memory != nullptr) TRY(to[i].memory->write(to[i].staged.get(), from[i], to[i].bytes));
  return {};
}

Status StagedKernel::run_staged(const KernelArgs& args) {
  const auto addresses = [](const std::vector<Argument>& arguments, void* const* given) {
    std::vector<void*> result;
    for (size_t i = 0; i < arguments.size(); ++i)
      result.push_back(arguments[i].memory != nullptr ? arguments[i].staged.get() : given[i]);
    return result;
  };
  const std::vector<void*> inputs = addresses(inputs_, args.inputs),
                           outputs = addresses(outputs_, args.outputs);
  return kernel_->run({inputs.data(), outputs.data(),
                       workspace_.memory != nullptr ? workspace_.staged.get() : args.workspace});
}

Status StagedKernel::run(const KernelArgs& args) {
  if (held_) return run_staged(args);
  TRY(hold(args));
  Status status = run_staged(args);
  if (status.ok()) status = kernel_->finish();
  const Status released = release(args);
  return status.ok() ? released : status;
}

Status StagedKernel::hold(const KernelArgs& args) {
  TRY(write(inputs_, args.inputs));
  // What outputs hold before is a part of a trial: a kernel has to write all of them.
  TRY(write(outputs_, args.outputs));
  held_ = true;
  return {};
}

Status StagedKernel::release(const KernelArgs& args) {
  held_ = false;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].memory != nullptr)
      TRY(outputs_[i].memory->read(args.outputs[i], outputs_[i].staged.get(), outputs_[i].bytes));
  return {};
}

}  // namespace collage
