#include "backend/backend.h"
#include "base/check.h"

namespace collage {

namespace {
struct Entry {
  std::unique_ptr<Backend> backend;
  KernelSource source;
};
std::vector<Entry>& backends() {
  static auto* instance = new std::vector<Entry>;
  return *instance;
}
}  // namespace

void register_backend(std::unique_ptr<Backend> backend, KernelSource source) {
  COLLAGE_CHECK(find_backend(backend->name()) == nullptr, "backend '{}' is registered twice",
                backend->name());
  backend->register_operators();
  backends().push_back({std::move(backend), source});
}

std::string compiler_of(const Backend& backend) {
  for (const Entry& entry : backends())
    if (entry.backend.get() == &backend && entry.source == KernelSource::kOwn) return "";
  return backend.name();
}

Backend* find_backend(std::string_view name) {
  for (const Entry& entry : backends())
    if (entry.backend->name() == name) return entry.backend.get();
  return nullptr;
}

std::vector<Backend*> all_backends() {
  std::vector<Backend*> result;
  for (const Entry& entry : backends()) result.push_back(entry.backend.get());
  return result;
}

}  // namespace collage
