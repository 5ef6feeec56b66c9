// The kernel object: host code that launches functions on a device, their OpenCL source inside it,
// and its constants in the device's memory.
#pragma once

#include <HalideRuntime.h>

#include <memory>
#include <vector>

#include "backend/native/kernels/native_kernel.h"
#include "backend/opencl/kernels/launcher.h"
#include "runtime/kernel.h"

namespace collage::opencl {

using native::KernelArgument;

class OpenClKernel : public Kernel {
 public:
  /// Copies the constants to device number `device`.
  static Result<std::unique_ptr<OpenClKernel>> make(std::shared_ptr<const native::Code> code,
                                                    std::vector<KernelArgument> arguments,
                                                    int device);
  Status run(const KernelArgs& args) override;
  Status finish() override { return shared_->device->finish(); }
  Result<std::shared_ptr<Kernel>> twin() const override;
  bool twins_take_turns() const override { return true; }
  Result<SavedKernel> save() const override;
  size_t constant_bytes() const override { return shared_->constant_bytes; }

 private:
  /// What twins have in common.
  struct Shared {
    std::shared_ptr<const native::Code> code;
    std::vector<KernelArgument> arguments;
    std::vector<std::shared_ptr<void>> constants;  // of the device, for each argument
    size_t constant_bytes = 0;
    int number = 0;
    Device* device = nullptr;
  };
  explicit OpenClKernel(std::shared_ptr<const Shared> shared);

  std::shared_ptr<const Shared> shared_;
  Launcher launcher_;
  native::ArgumentDescriptors descriptors_;
};

}  // namespace collage::opencl
