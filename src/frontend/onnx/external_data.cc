#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace collage::frontend {

namespace {

constexpr size_t kMaxOpenFiles = 256;
constexpr size_t kMaxLocation = 4096;

// The steps of a relative path, or why it may leave the folder.
Result<std::vector<std::string>> split_location(const std::string& location) {
  if (location.empty()) return bad_model("external data without a location");
  if (location.size() > kMaxLocation)
    return bad_model("external data location of {} bytes, the limit is {}", location.size(),
                     kMaxLocation);
  if (location.find('\0') != std::string::npos)
    return bad_model("external data location holds a zero byte");
  if (location[0] == '/')
    return bad_model("external data '{}': an absolute path is refused", location);
  std::vector<std::string> steps;
  size_t from = 0;
  while (from <= location.size()) {
    size_t to = std::min(location.find('/', from), location.size());
    std::string step = location.substr(from, to - from);
    if (step == "..")
      return bad_model("external data '{}': a path that leaves the model's folder is refused",
                       location);
    if (!step.empty() && step != ".") steps.push_back(std::move(step));
    from = to + 1;
  }
  if (steps.empty()) return bad_model("external data '{}' names no file", location);
  return steps;
}

}  // namespace

ExternalData::~ExternalData() {
  for (const auto& [location, file] : files_) ::close(file.fd);
}

Result<ExternalData::File> ExternalData::open(const std::string& location) {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  std::vector<std::string> steps = TRY(split_location(location));
  if (files_.size() >= kMaxOpenFiles) {
    for (const auto& [name, file] : files_) ::close(file.fd);
    files_.clear();
  }
  const std::filesystem::path start = folder_.empty() ? "." : folder_;
  int fd = ::open(start.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; fd >= 0 && i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    // O_NONBLOCK: a FIFO must not block before fstat refuses it.
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    int next = ::openat(fd, steps[i].c_str(), flags);
    const int problem = errno;
    ::close(fd);
    fd = next;
    errno = problem;
  }
  if (fd < 0) {
    if (errno == ELOOP || errno == ENOTDIR)
      return bad_model("external data '{}': a symbolic link or a file as folder is refused",
                       location);
    return bad_model("external data '{}': {}", location, std::strerror(errno));
  }
  struct stat info = {};
  const bool known = ::fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode) || info.st_nlink > 1) {
    ::close(fd);
    if (known && S_ISREG(info.st_mode))
      return bad_model("external data '{}': a file with {} hard links is refused; copy it",
                       location, info.st_nlink);
    return bad_model("external data '{}' is not a regular file", location);
  }
  File file{fd, static_cast<uint64_t>(info.st_size)};
  files_.emplace(location, file);
  return file;
}

Result<uint64_t> ExternalData::size(const std::string& location) {
  File file = TRY(open(location));
  return file.size;
}

Status ExternalData::check(const std::string& location, uint64_t offset, uint64_t length) {
  File file = TRY(open(location));
  if (offset > file.size || length > file.size - offset)
    return bad_model("external data '{}': {} bytes at offset {} do not fit in its {} bytes",
                     location, length, offset, file.size);
  return {};
}

Result<std::shared_ptr<const void>> ExternalData::map(const std::string& location, uint64_t offset,
                                                      uint64_t length) {
  TRY(check(location, offset, length));
  File& file = files_.at(location);
  if (file.mapped == nullptr) file.mapped = TRY(MappedFile::open(file.fd));
  // It may be shorter by now.
  if (offset + length > file.mapped->bytes())
    return bad_model("external data '{}' ended while it was read", location);
  return std::shared_ptr<const void>(file.mapped, file.mapped->data() + offset);
}

Status ExternalData::read(const std::string& location, uint64_t offset, uint64_t length,
                          void* target) {
  TRY(check(location, offset, length));
  File file = TRY(open(location));
  auto* out = static_cast<char*>(target);
  while (length > 0) {
    const size_t piece = std::min<uint64_t>(length, uint64_t{1} << 30);
    ssize_t count = ::pread(file.fd, out, piece, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return bad_model("external data '{}': reading at offset {}: {}", location, offset,
                       std::strerror(errno));
    if (count == 0)
      return bad_model("external data '{}' ended at offset {} while it was read", location, offset);
    out += count;
    offset += static_cast<uint64_t>(count);
    length -= static_cast<uint64_t>(count);
  }
  return {};
}

}  // namespace collage::frontend
