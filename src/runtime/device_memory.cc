#include "runtime/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace collage {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<VirtualDevice, std::vector<std::shared_ptr<DeviceMemory>>> memories;  // the last is used
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

void register_device_memory(const VirtualDevice& device, std::shared_ptr<DeviceMemory> memory) {
  const std::lock_guard lock(registry().mutex);
  registry().memories[device].push_back(std::move(memory));
}

DeviceMemory* find_device_memory(const VirtualDevice& device) {
  const std::lock_guard lock(registry().mutex);
  const auto it = registry().memories.find(device);
  return it == registry().memories.end() ? nullptr : it->second.back().get();
}

Result<DeviceMemory*> require_device_memory(const VirtualDevice& device) {
  if (DeviceMemory* memory = find_device_memory(device)) return memory;
  return error(ErrorCode::kUnavailable, "no backend offers memory of the device {} here",
               device_text(device));
}

Result<std::shared_ptr<void>> reserve_addresses(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  void* begin = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    return error(ErrorCode::kUnavailable, "no addresses for {} bytes of device memory: {}", bytes,
                 std::strerror(errno));
  return std::shared_ptr<void>(begin, [bytes](void* address) { munmap(address, bytes); });
}

}  // namespace collage
