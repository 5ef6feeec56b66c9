#include <list>
#include <mutex>

#include "runtime/saved_kernel.h"

namespace collage {

namespace {

struct Registry {
  std::mutex mutex;
  std::list<KernelLoader> loaders;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

const KernelLoader* find_in(const std::list<KernelLoader>& loaders, std::string_view name) {
  for (const KernelLoader& loader : loaders)
    if (loader.name == name) return &loader;
  return nullptr;
}

}  // namespace

namespace {

Status holds(const std::vector<size_t>& buffers, size_t index, size_t bytes, const char* role) {
  if (index >= buffers.size()) return bad_model("a kernel's {} {} is not there", role, index);
  if (bytes <= buffers[index]) return {};
  return bad_model("a kernel's {} {} has {} bytes, it uses {}", role, index, buffers[index], bytes);
}

}  // namespace

Status BufferSizes::input_holds(size_t index, size_t bytes) const {
  return holds(inputs, index, bytes, "input");
}

Status BufferSizes::output_holds(size_t index, size_t bytes) const {
  return holds(outputs, index, bytes, "output");
}

void register_kernel_loader(KernelLoader loader) {
  std::lock_guard lock(registry().mutex);
  if (find_in(registry().loaders, loader.name) == nullptr)
    registry().loaders.push_back(std::move(loader));
}

const KernelLoader* find_kernel_loader(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  return find_in(registry().loaders, name);
}

}  // namespace collage
