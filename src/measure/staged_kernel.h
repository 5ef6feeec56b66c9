// StagedKernel: a kernel of a device as a kernel of the host, so that it is tried and judged like
// any other: its arguments are copied to device memory of its own before a run, and back after it.
// Only the run is timed.
#pragma once

#include <memory>
#include <vector>

#include "backend/variant.h"
#include "runtime/device_memory.h"
#include "runtime/kernel.h"

namespace collage {

class StagedKernel : public Kernel {
 public:
  // Returns the kernel itself if all of its buffers lie in the host's memory. `device`: the one it
  // runs on.
  static Result<std::shared_ptr<Kernel>> around(std::shared_ptr<Kernel> kernel,
                                                const Variant& variant,
                                                const std::vector<TensorType>& inputs,
                                                const std::vector<TensorType>& outputs,
                                                const VirtualDevice& device);

  Status run(const KernelArgs& args) override;
  Status finish() override { return kernel_->finish(); }
  size_t workspace_bytes() const override;
  size_t constant_bytes() const override { return kernel_->constant_bytes(); }
  ThreadUse thread_use() const override { return kernel_->thread_use(); }

  // Copies these arguments to the device, where runs use them until `release`, which copies the
  // results back.
  Status hold(const KernelArgs& args);
  Status release(const KernelArgs& args);

 private:
  struct Argument {
    DeviceMemory* memory = nullptr;  // null: it lies on the host
    std::shared_ptr<void> staged;
    size_t bytes = 0;
  };
  static Result<std::vector<Argument>> stage(const std::vector<TensorType>& types,
                                             const std::vector<Encoding>& encodings);
  Status write(const std::vector<Argument>& to, void* const* from);
  Status run_staged(const KernelArgs& args);

  std::shared_ptr<Kernel> kernel_;
  std::vector<Argument> inputs_, outputs_;
  Argument workspace_;
  bool held_ = false;
};

}  // namespace collage
