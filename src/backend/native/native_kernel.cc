#include "backend/native/native_kernel.h"

#include <cstring>

#include "backend/native/runtime_hooks.h"
#include "runtime/huge_pages.h"

namespace collage::native {
namespace {

constexpr size_t kAlignment = 64;

/// Null when there is no memory. Vector loads may read up to a line beyond the end.
std::shared_ptr<const void> constant_copy(const void* data, size_t bytes) {
  Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(bytes + kAlignment);
  if (!memory) return nullptr;
  std::memcpy(memory->get(), data, bytes);
  return *memory;
}

/// The constant's own storage where it is aligned, else a copy.
std::shared_ptr<const void> storage_of(const Tensor& tensor) {
  if (reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment != 0)
    return constant_copy(tensor.raw(), tensor.bytes());
  auto holder = std::make_shared<Tensor>(tensor);
  return {holder, holder->raw()};
}

}  // namespace

NativeKernel::NativeKernel(std::shared_ptr<const Code> code, const BuiltKernel& built)
    : code_(std::move(code)) {
  auto describe = [&](const std::vector<int64_t>& extents, Halide::Type type) -> Argument& {
    Argument& argument = arguments_.emplace_back();
    int64_t stride = 1;
    for (int64_t extent : extents) {
      argument.dims.emplace_back(0, static_cast<int32_t>(extent), static_cast<int32_t>(stride));
      stride *= extent;
    }
    argument.buffer.type = type;
    argument.buffer.dimensions = static_cast<int32_t>(extents.size());
    return argument;
  };
  for (const Binding& binding : built.bindings) {
    Argument& argument = describe(physical_extents(binding.buffer.shape(), ChannelLayout::kPlain),
                                  binding.buffer.param().type());
    argument.input = binding.param;
    if (binding.param >= 0) continue;
    if (binding.packed != nullptr) {
      argument.storage = binding.packed;
      constant_bytes_ += binding.packed_bytes;
    } else {
      argument.storage = storage_of(binding.constant);
      constant_bytes_ += binding.constant.bytes();
    }
    argument.buffer.host = static_cast<uint8_t*>(const_cast<void*>(argument.storage.get()));
  }
  for (size_t i = 0; i < built.result_extents.size(); ++i) {
    describe(built.result_extents[i], built.result_types[i]).output = static_cast<int>(i);
  }
  for (Argument& argument : arguments_) {
    argument.buffer.dim = argument.dims.data();
    pointers_.push_back(&argument.buffer);
  }
}

Status NativeKernel::run(const KernelArgs& args) {
  for (Argument& argument : arguments_) {
    if (argument.input >= 0)
      argument.buffer.host = static_cast<uint8_t*>(args.inputs[argument.input]);
    if (argument.output >= 0)
      argument.buffer.host = static_cast<uint8_t*>(args.outputs[argument.output]);
  }
  if (const int code = code_->call(pointers_.data()); code != 0) {
    return internal_error("native: a kernel failed with code {}: {}", code, take_kernel_error());
  }
  return {};
}

}  // namespace collage::native
