#include "library.h"

#include <dlfcn.h>

#include <filesystem>

namespace collage::torch_plugin {

namespace {

Result<MakeKernel> load() {
  const auto refuse = [] {
    const char* why = ::dlerror();
    return error(ErrorCode::kUnavailable, "PyTorch cannot be loaded: {}",
                 why != nullptr ? why : "the library is another");
  };
  Dl_info plugin{};
  if (::dladdr(reinterpret_cast<const void*>(&kernel_maker), &plugin) == 0) return refuse();
  const std::filesystem::path path =
      std::filesystem::path(plugin.dli_fname).parent_path() / "libcollage_torch_kernels.so";
  // Never closed: kernels live for as long as programs do.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void* symbol = handle == nullptr ? nullptr : ::dlsym(handle, kKernels);
  if (symbol == nullptr) return refuse();
  const MakeKernel maker = reinterpret_cast<MakeKernel (*)()>(symbol)();
  if (maker == nullptr)
    return error(ErrorCode::kUnavailable, "another version of PyTorch is in this process");
  return maker;
}

}  // namespace

Result<MakeKernel> kernel_maker() {
  static const Result<MakeKernel> maker = load();
  return maker;
}

}  // namespace collage::torch_plugin
