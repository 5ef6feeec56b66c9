#include "backend/backend.h"
#include "base/check.h"

namespace collage {

namespace {
std::vector<std::unique_ptr<Backend>>& backends() {
  static auto* instance = new std::vector<std::unique_ptr<Backend>>;
  return *instance;
}
}  // namespace

void register_backend(std::unique_ptr<Backend> backend) {
  COLLAGE_CHECK(find_backend(backend->name()) == nullptr, "backend '{}' is registered twice",
                backend->name());
  backends().push_back(std::move(backend));
}

Backend* find_backend(std::string_view name) {
  for (const auto& backend : backends())
    if (backend->name() == name) return backend.get();
  return nullptr;
}

std::vector<Backend*> all_backends() {
  std::vector<Backend*> result;
  for (const auto& backend : backends()) result.push_back(backend.get());
  return result;
}

}  // namespace collage
