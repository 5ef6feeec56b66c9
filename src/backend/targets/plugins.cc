#include "backend/targets/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "backend/targets/backends.h"
#include "collage/version.h"
#include "runtime/openmp_calls.h"

namespace collage {

namespace {

struct Plugins {
  std::mutex mutex;
  std::vector<std::string> paths;
};
Plugins& plugins() {
  static auto* loaded = new Plugins;
  return *loaded;
}

thread_local bool registering = false;

// While it lives, what the thread registers is a plugin's.
struct Registering {
  Registering() { registering = true; }
  ~Registering() { registering = false; }
};

}  // namespace

bool is_loading_plugin() { return registering; }

Status load_plugin(const std::filesystem::path& library) {
  std::error_code ec;
  std::filesystem::path path = std::filesystem::canonical(library, ec);
  if (ec) return usage_error("--plugin {}: {}", library.string(), ec.message());
  std::lock_guard lock(plugins().mutex);
  std::vector<std::string>& known = plugins().paths;
  if (std::find(known.begin(), known.end(), path.string()) != known.end()) return {};
  auto refuse = [&](const std::string& why) {
    return error(ErrorCode::kUnavailable, "--plugin {}: {}", library.string(), why);
  };
  register_all();
  // Never closed: its backend lives for the rest of the process.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return refuse(why != nullptr ? why : "cannot be loaded");
  }
  auto version = reinterpret_cast<const char* (*)()>(::dlsym(handle, "collage_plugin_version"));
  auto add = reinterpret_cast<void (*)()>(::dlsym(handle, "collage_plugin_register"));
  if (version == nullptr || add == nullptr)
    return refuse("is no plugin: COLLAGE_REGISTER stands nowhere in it");
  if (std::string_view(version()) != COLLAGE_VERSION)
    return refuse(fmt::format("was built for version {}, this is {}", version(), COLLAGE_VERSION));
  // One that calls more of OpenMP than is led has threads of its own.
  (void)lead_openmp_calls(reinterpret_cast<const void*>(add)).ok();
  try {
    const Registering now;
    add();
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
  known.push_back(path.string());
  return {};
}

std::vector<std::string> loaded_plugins() {
  std::lock_guard lock(plugins().mutex);
  return plugins().paths;
}

}  // namespace collage
