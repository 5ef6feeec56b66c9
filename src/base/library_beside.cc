#include "base/library_beside.h"

#include <sys/mman.h>

#include <filesystem>

namespace collage {

namespace fs = std::filesystem;

namespace {

bool has_room(size_t bytes) {
  if (bytes == 0) return true;
  void* room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

}  // namespace

fs::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 ||
      info.dli_fname == nullptr)
    return {};
  std::error_code code;
  return fs::weakly_canonical(info.dli_fname, code).parent_path();
}

Result<void*> load_library_beside(const std::string& file, size_t room) {
  if (!has_room(room))
    return error(ErrorCode::kUnavailable, "{} needs more memory than this process may have", file);
  std::string reason = "there is no " + file;
  for (const fs::path& folder : {library_folder(), library_folder() / "collage"}) {
    std::error_code code;
    if (!fs::exists(folder / file, code)) continue;
    if (void* library = dlopen((folder / file).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* why = dlerror();
    reason = why != nullptr ? why : file + " cannot be loaded";
  }
  return error(ErrorCode::kUnavailable, "{}", reason);
}

}  // namespace collage
