#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/files.h"

namespace collage {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as the system's own limit
constexpr int kFileAttempts = 100;

// What a name leads to.
struct Place {
  fs::path path;        // without links
  int open_file = -1;   // what the name stands for is this open file of the process (/dev/stdout)
  bool exists = false;  // with what kind of file, where it is none that is open:
  mode_t mode = 0;
};

Status failure(const fs::path& named, int code) {
  return internal_error("{}: {}", named.string(), std::strerror(code));
}

// The number that a name in /proc/self/fd is; -1: it is none.
int descriptor_number(const std::string& name) {
  int number = -1;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  return failed == std::errc() && end == name.data() + name.size() ? number : -1;
}

Result<Place> place_of(const fs::path& named) {
  const fs::path own_files = fs::path("/proc") / std::to_string(::getpid()) / "fd";
  fs::path path = named;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code code;
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", code);
    if (code) return failure(named, code.value());
    path = folder / path.filename();
    if (folder == own_files) return Place{path, descriptor_number(path.filename().string())};
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT && path.has_filename()) return Place{path};
      return failure(named, errno);
    }
    if (S_ISDIR(info.st_mode)) return failure(named, EISDIR);
    if (!S_ISLNK(info.st_mode)) return Place{path, -1, true, info.st_mode};
    const fs::path target = fs::read_symlink(path, code);
    if (code) return failure(named, code.value());
    path = folder / target;
  }
  return failure(named, ELOOP);
}

// Nobody can foresee it, so nobody can put a file or a link there before.
std::string unforeseen_name() {
  uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return fmt::format(".collage-{:016x}", number);
}

// Everything in the file, from its beginning.
Status copy_into(int target, const fs::path& file) {
  const int source = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (source < 0) return internal_error("{}", std::strerror(errno));
  std::vector<char> chunk(size_t{1} << 20);
  ssize_t count = 0;
  do {
    count = ::read(source, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count > 0 && !write_all(target, chunk.data(), static_cast<size_t>(count))) count = -1;
  } while (count > 0 || (count < 0 && errno == EINTR));
  const int code = errno;
  ::close(source);
  return count == 0 ? Status() : internal_error("{}", std::strerror(code));
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : named_(std::move(other.named_)),
      place_(std::move(other.place_)),
      written_through_(std::exchange(other.written_through_, -1)),
      temporary_(std::exchange(other.temporary_, fs::path())),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (written_through_ >= 0) ::close(written_through_);
}

Result<OutputFile> OutputFile::create(const fs::path& named) {
  const Place place = TRY(place_of(named));
  OutputFile file(named, place.path);
  std::error_code code;
  fs::path folder = place.path.parent_path();
  const bool is_open = place.open_file >= 0, is_device = place.exists && !S_ISREG(place.mode);
  if (is_open || is_device) {
    file.written_through_ =
        is_open ? ::fcntl(place.open_file, F_DUPFD_CLOEXEC, 0)
                : ::open(place.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (file.written_through_ < 0) return failure(named, errno);
    folder = fs::temp_directory_path(code);
    if (code) return failure(named, code.value());
  }
  const mode_t mode = file.written_through_ < 0 ? 0644 : 0600;
  for (int attempt = 0; attempt < kFileAttempts && file.descriptor_ < 0; ++attempt) {
    const fs::path temporary = folder / unforeseen_name();
    file.descriptor_ =
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file.descriptor_ >= 0) file.temporary_ = temporary;
    if (file.descriptor_ < 0 && errno != EEXIST) break;
  }
  if (file.descriptor_ < 0) return failure(named, errno);
  return file;
}

Status OutputFile::check(const fs::path& named) {
  const Place place = TRY(place_of(named));
  if (place.open_file >= 0)
    return ::fcntl(place.open_file, F_GETFD) >= 0 ? Status() : failure(named, errno);
  const bool is_device = place.exists && !S_ISREG(place.mode);
  const fs::path asked = is_device ? place.path : place.path.parent_path();
  return ::access(asked.c_str(), W_OK) == 0 ? Status() : failure(named, errno);
}

Status OutputFile::publish() {
  if (written_through_ >= 0) {
    std::fflush(stdout);  // it may be what is written to, and what was said before comes first
    return copy_into(written_through_, temporary_).with_context(named_.string());
  }
  const int file = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return failure(named_, errno);
  const bool kept = ::fsync(file) == 0;
  const int code = errno;
  ::close(file);
  if (!kept) return failure(named_, code);
  if (::rename(temporary_.c_str(), place_.c_str()) != 0) return failure(named_, errno);
  temporary_.clear();
  return {};
}

}  // namespace collage
