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
