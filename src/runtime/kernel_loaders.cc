#include <list>
#include <mutex>

#include "base/printable.h"
#include "runtime/saved_kernel.h"

namespace collage {

namespace {

struct LoaderRegistry {
  std::mutex mutex;
  std::list<KernelLoader> loaders;
};
LoaderRegistry& loaders() {
  static auto* instance = new LoaderRegistry;
  return *instance;
}

const KernelLoader* find_in(const std::list<KernelLoader>& loaders, std::string_view name) {
  for (const KernelLoader& loader : loaders)
    if (loader.name == name) return &loader;
  return nullptr;
}

Status holds(const std::vector<size_t>& buffers, const std::vector<VirtualDevice>& devices,
             size_t index, size_t bytes, const VirtualDevice& device, const char* role) {
  if (index >= buffers.size()) return bad_model("a kernel's {} {} is not there", role, index);
  if (bytes > buffers[index])
    return bad_model("a kernel's {} {} has {} bytes, it uses {}", role, index, buffers[index],
                     bytes);
  const VirtualDevice given = devices.empty() ? VirtualDevice() : devices[index];
  if (given == device) return {};
  return bad_model("a kernel's {} {} lies on {}, it uses memory of {}", role, index,
                   printable(device_text(given)), device_text(device));
}

}  // namespace

Status BufferSizes::input_holds(size_t index, size_t bytes, const VirtualDevice& device) const {
  return holds(inputs, input_devices, index, bytes, device, "input");
}

Status BufferSizes::output_holds(size_t index, size_t bytes, const VirtualDevice& device) const {
  return holds(outputs, output_devices, index, bytes, device, "output");
}

void register_kernel_loader(KernelLoader loader) {
  std::lock_guard lock(loaders().mutex);
  if (find_in(loaders().loaders, loader.name) == nullptr)
    loaders().loaders.push_back(std::move(loader));
}

const KernelLoader* find_kernel_loader(std::string_view name) {
  std::lock_guard lock(loaders().mutex);
  return find_in(loaders().loaders, name);
}

}  // namespace collage
