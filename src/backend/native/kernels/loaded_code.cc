#include "backend/native/kernels/loaded_code.h"

#include <dlfcn.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "base/memory_file.h"

namespace collage::native {
namespace {

/// A path of the descriptor that dlopen has not seen: it takes a library of an equal path for the
/// same one, and descriptor numbers are used again.
std::string unseen_path(int descriptor) {
  static std::atomic<uint32_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint32_t bits = counter++, i = 0; i < 24; ++i, bits >>= 1)
    path += (bits & 1) != 0 ? "//." : "/.";
  return path + "/" + std::to_string(descriptor);
}

/// Fills the table of a library that was loaded; false where it has none.
bool provide_hooks(void* library, const std::vector<Hook>& hooks) {
  auto** table = static_cast<void**>(dlsym(library, kHookTable));
  if (table == nullptr) return false;
  for (const Hook& hook : hooks) *table++ = hook.function;
  return true;
}

}  // namespace

Result<std::shared_ptr<const Code>> Code::load(SharedBytes library,
                                               const std::vector<Hook>& hooks) {
  const MemoryFile file =
      TRY(MemoryFile::of("collage-kernel", library.text()).with_context("native"));
  void* handle = dlopen(unseen_path(file.descriptor()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return internal_error("native: cannot load a compiled kernel: {}", dlerror());
  auto* function = reinterpret_cast<int (*)(void**)>(dlsym(handle, kEntry));
  if (function == nullptr || !provide_hooks(handle, hooks)) {
    dlclose(handle);
    return internal_error("native: a compiled kernel lacks its symbols");
  }
  return std::shared_ptr<const Code>(new Code(std::move(library), handle, function));
}

Code::~Code() { dlclose(handle_); }

Result<std::shared_ptr<const Code>> shared_code(const SharedBytes& library,
                                                const std::vector<Hook>& hooks) {
  static auto* mutex = new std::mutex;
  static auto* loaded = new std::map<const void*, std::weak_ptr<const Code>>;
  std::lock_guard lock(*mutex);
  std::weak_ptr<const Code>& known = (*loaded)[library.data.get()];
  if (auto code = known.lock(); code != nullptr && code->library().bytes == library.bytes)
    return code;
  std::shared_ptr<const Code> code = TRY(Code::load(library, hooks));
  known = code;
  return code;
}

}  // namespace collage::native
