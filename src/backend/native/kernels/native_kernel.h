// The kernel object: compiled code, its constants, and the buffer descriptors it is called with.
#pragma once

#include <HalideRuntime.h>

#include <memory>
#include <vector>

#include "backend/native/kernels/kernel_argument.h"
#include "backend/native/kernels/loaded_code.h"
#include "runtime/updating_kernel.h"

namespace collage::native {

class NativeKernel : public UpdatingKernel {
 public:
  /// `calls_library`: the code calls external functions, which another process may not have.
  NativeKernel(std::shared_ptr<const Code> code, std::vector<KernelArgument> arguments,
               bool calls_library = false, std::vector<Update> updates = {});
  Status run(const KernelArgs& args) override;
  size_t constant_bytes() const override { return constant_bytes_; }
  Result<std::shared_ptr<Kernel>> twin() const override;
  Result<SavedKernel> save() const override;
  Result<KernelSource> source() const override;
  std::vector<Update> updates() const override { return updates_; }

 private:
  std::shared_ptr<const Code> code_;
  std::vector<KernelArgument> arguments_;
  bool calls_library_;
  std::vector<Update> updates_;
  ArgumentDescriptors descriptors_;
  size_t constant_bytes_ = 0;
};

}  // namespace collage::native
