#include "artifact/kernel_libraries.h"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "artifact/portable_kernels.h"
#include "base/printable.h"
#include "runtime/openmp_calls.h"

namespace collage {

namespace {

namespace fs = std::filesystem;

std::atomic<void (*)()> own_loaders{nullptr};

// The folder of the library that holds this code.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code code;
  return fs::weakly_canonical(info.dli_fname, code).parent_path();
}

bool is_plain_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

Status load_library(const std::string& kernels) {
  static auto* mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const std::string file = "libcollage_kernels_" + kernels + ".so";
  std::string reason = "there is no " + file;
  for (const fs::path& folder : {own_folder(), own_folder() / "collage"}) {
    std::error_code code;
    if (!fs::exists(folder / file, code)) continue;
    void* library = dlopen((folder / file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      reason = why != nullptr ? why : file + " cannot be loaded";
      continue;
    }
    auto* add = reinterpret_cast<void (*)()>(dlsym(library, "collage_register_kernels"));
    if (add == nullptr) return internal_error("{} registers no kernels", file);
    TRY(lead_openmp_calls(reinterpret_cast<const void*>(add)));
    add();
    return {};
  }
  return error(ErrorCode::kUnavailable, "{}", reason);
}

}  // namespace

void set_own_loaders(void (*add)()) { own_loaders = add; }

Result<const KernelLoader*> find_kernel_library(const std::string& name) {
  register_portable_kernels();
  if (const KernelLoader* loader = find_kernel_loader(name)) return loader;
  if (auto* add = own_loaders.load()) {
    add();
    if (const KernelLoader* loader = find_kernel_loader(name)) return loader;
  }
  const std::string kernels = name.substr(0, name.find('.'));
  if (is_plain_name(kernels)) {
    TRY(load_library(kernels).with_context(fmt::format("it needs kernels of {}", kernels)));
    if (const KernelLoader* loader = find_kernel_loader(name)) return loader;
  }
  return error(ErrorCode::kUnavailable, "it needs kernels of '{}', which nobody here has",
               printable(name));
}

}  // namespace collage
