#include "backend/native/codegen/kernel_arguments.h"

#include <cstring>

#include "base/mapped_file.h"
#include "runtime/huge_pages.h"
#include "runtime/shared_constants.h"

namespace collage::native {
namespace {

constexpr size_t kAlignment = 64;

/// Vector loads may read up to a line beyond the end, where a mapped file may end.
bool is_readable_beyond(const Tensor& tensor) {
  const char* data = static_cast<const char*>(tensor.raw());
  return !lies_in_mapped_file(data) || lies_in_mapped_file(data + tensor.bytes() + kAlignment - 1);
}

/// The constant's own storage where that will do, else a copy.
Result<SharedBytes> storage_of(const Tensor& tensor) {
  if (reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment == 0 && is_readable_beyond(tensor)) {
    auto holder = std::make_shared<Tensor>(shared_constant(tensor));
    return SharedBytes{{holder, holder->raw()}, tensor.bytes()};
  }
  std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(tensor.bytes() + kAlignment));
  std::memcpy(copy.get(), tensor.raw(), tensor.bytes());
  return shared_constant({std::move(copy), tensor.bytes()});
}

}  // namespace

Result<std::vector<KernelArgument>> kernel_arguments(const BuiltKernel& built) {
  std::vector<KernelArgument> arguments;
  for (const Binding& binding : built.bindings) {
    KernelArgument& argument = arguments.emplace_back();
    argument.extents = physical_extents(binding.buffer.shape(), ChannelLayout::kPlain);
    argument.type = binding.buffer.param().type();
    argument.input = binding.param;
    if (const auto found = built.indexed.find(binding.param); found != built.indexed.end())
      argument.indexed = found->second;
    if (binding.param >= 0) continue;
    argument.constant = binding.packed != nullptr
                            ? shared_constant({binding.packed, binding.packed_bytes})
                            : TRY(storage_of(binding.constant));
  }
  for (const int32_t value : built.symbol_values) {
    KernelArgument& argument = arguments.emplace_back();
    argument.type = halide_type_of<int32_t>();
    argument.number = value;
  }
  for (size_t i = 0; i < built.result_extents.size(); ++i) {
    KernelArgument& argument = arguments.emplace_back();
    argument.extents = built.result_extents[i];
    argument.type = built.result_types[i];
    argument.output = static_cast<int>(i);
  }
  return arguments;
}

}  // namespace collage::native
