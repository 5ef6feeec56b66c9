// The kernel object: compiled code, its constants, and the buffer descriptors it is called with.
#pragma once

#include <HalideRuntime.h>

#include <memory>
#include <vector>

#include "backend/native/code_cache.h"
#include "backend/native/kernel_builder.h"
#include "runtime/kernel.h"

namespace collage::native {

class NativeKernel : public Kernel {
 public:
  NativeKernel(std::shared_ptr<const Code> code, const BuiltKernel& built);
  Status run(const KernelArgs& args) override;
  size_t constant_bytes() const override { return constant_bytes_; }

 private:
  struct Argument {
    halide_buffer_t buffer{};
    std::vector<halide_dimension_t> dims;
    int input = -1, output = -1;
    std::shared_ptr<const void> storage;  // of a constant
  };

  std::shared_ptr<const Code> code_;
  std::vector<Argument> arguments_;
  std::vector<void*> pointers_;
  size_t constant_bytes_ = 0;
};

}  // namespace collage::native
