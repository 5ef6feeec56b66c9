#include "backend/reference/kernels/transfer.h"

#include <vector>

#include "runtime/device_memory.h"

namespace collage {

namespace {

// Between two devices by way of the host's memory.
class Transfer : public Kernel {
 public:
  Transfer(DeviceMemory* from, DeviceMemory* to, size_t bytes, SavedKernel saved)
      : from_(from),
        to_(to),
        passing_(from != nullptr && to != nullptr ? bytes : 0),
        bytes_(bytes),
        saved_(std::move(saved)) {}

  Status run(const KernelArgs& args) override {
    if (to_ == nullptr) return from_->read(args.outputs[0], args.inputs[0], bytes_);
    const void* source = args.inputs[0];
    if (from_ != nullptr) {
      TRY(from_->read(passing_.data(), source, bytes_));
      source = passing_.data();
    }
    return to_->write(args.outputs[0], source, bytes_);
  }
  Status finish() override { return to_ == nullptr ? Status() : to_->synchronise(); }
  Result<std::shared_ptr<Kernel>> twin() const override {
    return std::shared_ptr<Kernel>(std::make_shared<Transfer>(from_, to_, bytes_, saved_));
  }
  Result<SavedKernel> save() const override { return saved_; }

 private:
  DeviceMemory *from_, *to_;  // null: the host's
  std::vector<unsigned char> passing_;
  size_t bytes_;
  SavedKernel saved_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_transfer_kernel(const TensorType& type, const Encoding& from,
                                                     const Encoding& to, SavedKernel saved) {
  if (from.dtype != to.dtype || !(from.layout == to.layout) || from.device == to.device)
    return unsupported("reference: no transfer from {} to {}: they differ in more than the device",
                       from.to_string(), to.to_string());
  const auto memory = [](const VirtualDevice& device) -> Result<DeviceMemory*> {
    return is_host_memory(device) ? static_cast<DeviceMemory*>(nullptr)
                                  : TRY(require_device_memory(device));
  };
  return std::unique_ptr<Kernel>(std::make_unique<Transfer>(
      TRY(memory(from.device)), TRY(memory(to.device)),
      from.layout.physical_bytes(type.shape, from.dtype), std::move(saved)));
}

}  // namespace collage
