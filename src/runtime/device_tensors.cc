#include "runtime/device_tensors.h"

#include <collage/device.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>

namespace collage {

namespace {

struct Allocations {
  std::mutex mutex;
  std::map<const char*, std::pair<size_t, PlaceOnDevice>> by_begin;  // with bytes
  std::atomic<size_t> count{0};  // most processes have none, and look no further
};
Allocations& allocations() {
  static auto* instance = new Allocations;
  return *instance;
}

// "gpu:1/texture"
Result<VirtualDevice> device_of_text(const std::string& text) {
  VirtualDevice device;
  const size_t scope = text.find('/'), colon = text.find(':');
  device.device = text.substr(0, std::min(colon, scope));
  bool is_right = !device.device.empty();
  if (scope != std::string::npos) device.memory_scope = text.substr(scope + 1);
  if (device.memory_scope == "global") device.memory_scope.clear();
  if (colon < scope) {
    const char *begin = text.data() + colon + 1, *end = text.data() + std::min(scope, text.size());
    const auto [stop, error] = std::from_chars(begin, end, device.id);
    is_right = is_right && error == std::errc() && stop == end && device.id >= 0;
  }
  if (!is_right) return usage_error("'{}' is no device, such as gpu:0", text);
  return device;
}

Result<Tensor> allocated(const VirtualDevice& device, DType dtype, Shape shape) {
  if (is_host_memory(device)) return Tensor::allocate(dtype, std::move(shape));
  DeviceMemory* memory = TRY(require_device_memory(device));
  const size_t bytes = static_cast<size_t>(TRY(checked_num_elements(shape))) * dtype_size(dtype);
  const std::shared_ptr<void> storage = TRY(memory->allocate(bytes));
  const char* begin = static_cast<const char*>(storage.get());
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  all.by_begin[begin] = {std::max<size_t>(bytes, 1), {device, memory}};
  ++all.count;
  const auto owner = std::shared_ptr<void>(storage.get(), [storage, begin](void*) {
    Allocations& known = allocations();
    const std::lock_guard freeing(known.mutex);
    known.by_begin.erase(begin);
    --known.count;
  });
  return Tensor::share(dtype, std::move(shape), owner, storage.get());
}

}  // namespace

std::optional<PlaceOnDevice> place_of(const Tensor& tensor) {
  Allocations& all = allocations();
  if (all.count == 0) return std::nullopt;
  const auto* at = static_cast<const char*>(tensor.raw());
  const std::lock_guard lock(all.mutex);
  auto next = all.by_begin.upper_bound(at);
  if (next == all.by_begin.begin()) return std::nullopt;
  const auto& [begin, allocation] = *--next;
  if (at >= begin + allocation.first) return std::nullopt;
  return allocation.second;
}

Status check_on_host(std::span<const Tensor> tensors, std::string_view role) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (const auto place = place_of(tensors[i]))
      return usage_error("{} {} is on {}: programs of several shapes take tensors of the host",
                         role, i, device_text(place->device));
  return {};
}

Result<Tensor> allocate_on(const std::string& device, DType dtype, Shape shape) {
  return allocated(TRY(device_of_text(device)), dtype, std::move(shape));
}

Result<Tensor> copy_to(const std::string& device, const Tensor& tensor) {
  Tensor source = tensor;
  if (const auto from = place_of(tensor)) {
    source = TRY(Tensor::allocate(tensor.dtype(), tensor.shape()));
    TRY(from->memory->read(source.raw(), tensor.raw(), tensor.bytes()));
  }
  Tensor copy = TRY(allocate_on(device, tensor.dtype(), tensor.shape()));
  if (const auto to = place_of(copy)) {
    TRY(to->memory->write(copy.raw(), source.raw(), source.bytes()));
    TRY(to->memory->synchronise());
  } else if (source.bytes() > 0) {
    std::memcpy(copy.raw(), source.raw(), source.bytes());
  }
  return copy;
}

std::string device_of(const Tensor& tensor) {
  const auto place = place_of(tensor);
  return place ? device_text(place->device) : "cpu";
}

}  // namespace collage
