#include "artifact/kernel_libraries.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include "artifact/portable_kernels.h"
#include "base/library_beside.h"
#include "base/printable.h"
#include "runtime/openmp_calls.h"

namespace collage {

namespace {

std::atomic<void (*)()> own_loaders{nullptr};

bool is_plain_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

Status load_library(const std::string& kernels) {
  static auto* mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const std::string file = "libcollage_kernels_" + kernels + ".so";
  void* library = TRY(load_library_beside(file));
  auto* add = reinterpret_cast<void (*)()>(dlsym(library, "collage_register_kernels"));
  if (add == nullptr) return internal_error("{} registers no kernels", file);
  TRY(lead_openmp_calls(reinterpret_cast<const void*>(add)));
  add();
  return {};
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
