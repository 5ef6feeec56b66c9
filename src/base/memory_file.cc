#include "base/memory_file.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace collage {

Result<MemoryFile> MemoryFile::create(const char* name, size_t most_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < most_bytes)
    return error(ErrorCode::kUnavailable,
                 "this process may write files of {} bytes at most (ulimit -f), and needs {}",
                 limit.rlim_cur, most_bytes);
  MemoryFile file(::memfd_create(name, MFD_CLOEXEC));
  if (file.descriptor_ < 0)
    return error(ErrorCode::kUnavailable, "cannot make a file in memory: {}", std::strerror(errno));
  return file;
}

Result<MemoryFile> MemoryFile::of(const char* name, std::string_view content) {
  MemoryFile file = TRY(create(name, content.size()));
  if (!write_all(file.descriptor_, content.data(), content.size()))
    return error(ErrorCode::kUnavailable, "cannot write {} bytes to memory: {}", content.size(),
                 std::strerror(errno));
  return file;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::string> MemoryFile::content() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0)
    return internal_error("a file in memory: {}", std::strerror(errno));
  std::string text(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t n =
        ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return internal_error("a file in memory cannot be read");
    done += static_cast<size_t>(n);
  }
  return text;
}

}  // namespace collage
