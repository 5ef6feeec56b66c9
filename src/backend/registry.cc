#include <mutex>

#include "backend/backend.h"
#include "base/check.h"

namespace collage {

namespace {

struct Entry {
  std::unique_ptr<Backend> backend;
  KernelOrigin origin;
};
// Plugins are loaded while other threads compile.
struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// With the registry locked.
Backend* find_in(const std::vector<Entry>& entries, std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.backend->name() == name) return entry.backend.get();
  return nullptr;
}

}  // namespace

void register_backend(std::unique_ptr<Backend> backend, KernelOrigin origin) {
  std::lock_guard lock(registry().mutex);
  COLLAGE_CHECK(find_in(registry().entries, backend->name()) == nullptr,
                "backend '{}' is registered twice", backend->name());
  registry().entries.push_back({std::move(backend), origin});
}

std::string compiler_of(const Backend& backend) {
  std::lock_guard lock(registry().mutex);
  for (const Entry& entry : registry().entries)
    if (entry.backend.get() == &backend && entry.origin == KernelOrigin::kOwn) return "";
  return backend.name();
}

Backend* find_backend(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  return find_in(registry().entries, name);
}

std::vector<Backend*> all_backends() {
  std::lock_guard lock(registry().mutex);
  std::vector<Backend*> result;
  for (const Entry& entry : registry().entries) result.push_back(entry.backend.get());
  return result;
}

}  // namespace collage
