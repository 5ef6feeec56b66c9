// A kernel of immutable code, packed weights included, and a work queue of its own: twins share the
// code and run at once.
#pragma once

#include <memory>
#include <utility>

#include "backend/contraction/kernels/work_queue.h"
#include "runtime/kernel.h"

namespace collage::contraction {

template <typename Code>
class SharingKernel : public Kernel {
 public:
  explicit SharingKernel(std::shared_ptr<const Code> code)
      : code_(std::move(code)), queue_(code_->threads()) {}

  Status run(const KernelArgs& args) override { return code_->run(args, queue_); }
  size_t workspace_bytes() const override { return code_->workspace_bytes(); }
  size_t constant_bytes() const override { return code_->constant_bytes(); }
  Result<std::shared_ptr<Kernel>> twin() const override {
    return std::shared_ptr<Kernel>(std::make_shared<SharingKernel>(code_));
  }
  Result<SavedKernel> save() const override { return code_->save(); }

 private:
  std::shared_ptr<const Code> code_;
  WorkQueue queue_;  ///< of the threads of one run
};

}  // namespace collage::contraction
