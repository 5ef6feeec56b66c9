#include "artifact/artifact_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "artifact/zip.h"
#include "base/hash.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

constexpr size_t kAlignment = 64;

Result<SharedBytes> map_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error(ErrorCode::kUsage, "{}", std::strerror(errno));
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto bytes = static_cast<size_t>(info.st_size);
  void* memory =
      is_file && bytes > 0 ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  const int code = errno;
  ::close(fd);
  if (!is_file) return usage_error("this is no file");
  if (bytes == 0) return bad_model("this is no artifact: it is empty");
  if (memory == MAP_FAILED) return internal_error("mmap: {}", std::strerror(code));
  return SharedBytes{std::shared_ptr<void>(memory, [bytes](void* p) { ::munmap(p, bytes); }),
                     bytes};
}

}  // namespace

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::create(SharedBytes content) {
  Manifest manifest = TRY(read_zip(content.text()));
  return std::shared_ptr<ArtifactFile>(new ArtifactFile(std::move(content), std::move(manifest)));
}

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::open(const std::filesystem::path& path) {
  return create(TRY(map_file(path)));
}

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::from_memory(const void* data, size_t bytes,
                                                                std::shared_ptr<const void> owner) {
  if (owner != nullptr && reinterpret_cast<uintptr_t>(data) % kAlignment == 0)
    return create({{std::move(owner), data}, bytes});
  std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(bytes));
  if (bytes > 0) std::memcpy(copy.get(), data, bytes);
  return create({std::move(copy), bytes});
}

Result<SharedBytes> ArtifactFile::entry(const std::string& name) {
  const ManifestEntry* found = manifest_.find(name);
  if (found == nullptr) return bad_model("there is no entry '{}'", name);
  const auto* data = static_cast<const char*>(content_.data.get()) + found->offset;
  const std::lock_guard lock(mutex_);
  if (checked_.count(name) == 0) {
    if (sha256_hex({data, found->bytes}) != found->sha256)
      return bad_model("entry '{}' is damaged: it does not fit its hash", name);
    checked_.insert(name);
  }
  return SharedBytes{{shared_from_this(), data}, found->bytes};
}

}  // namespace collage
