#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "frontend/onnx/large_weights.h"

namespace collage::frontend {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxOpenFiles = 256;
constexpr size_t kMaxLocation = 4096;

// Refuses what is no relative path downwards.
Status check_location(const std::string& location) {
  if (location.empty()) return bad_model("external data without a location");
  if (location.size() > kMaxLocation)
    return bad_model("external data location of {} bytes, the limit is {}", location.size(),
                     kMaxLocation);
  if (location.find('\0') != std::string::npos)
    return bad_model("external data location holds a zero byte");
  if (location[0] == '/')
    return bad_model("external data '{}': an absolute path is refused", location);
  for (const fs::path& step : fs::path(location))
    if (step == "..")
      return bad_model("external data '{}': a path that leaves the model's folder is refused",
                       location);
  return {};
}

// The steps from the root to the path; none where the path is not inside of it.
std::optional<std::vector<std::string>> steps_below(const fs::path& root, const fs::path& path) {
  const auto [left, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (left != root.end()) return std::nullopt;
  return std::vector<std::string>(rest, path.end());
}

// Where the folder is a snapshot in a cache of Hugging Face, what the cache has of the model.
std::vector<fs::path> cached_folders(const fs::path& folder) {
  for (fs::path path = folder; path.has_relative_path(); path = path.parent_path())
    if (path.parent_path().filename() == "snapshots") {
      const fs::path model = path.parent_path().parent_path();
      if (model.filename().string().starts_with("models--"))
        return {model / "blobs", model / "snapshots"};
    }
  return {};
}

// Every step relative to the one before it, no link followed; -1 with errno.
int open_below(const fs::path& root, const std::vector<std::string>& steps) {
  int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  for (size_t i = 0; fd >= 0 && i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    // O_NONBLOCK: a FIFO must not block before fstat refuses it.
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    const int next = ::openat(fd, steps[i].c_str(), flags);
    const int problem = errno;
    ::close(fd);
    fd = next;
    errno = problem;
  }
  return fd;
}

}  // namespace

ExternalData::~ExternalData() {
  for (const auto& [location, file] : files_) ::close(file.fd);
}

Status ExternalData::find_roots() {
  if (!roots_.empty()) return {};
  std::error_code code;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, code);
  if (code) return bad_model("{}: {}", folder_.string(), code.message());
  std::vector<fs::path> roots = {folder};
  for (fs::path& cached : cached_folders(folder)) roots.push_back(std::move(cached));
  for (const fs::path& allowed : allowed_) {
    roots.push_back(fs::canonical(allowed, code));
    if (code) return usage_error("--data-root {}: {}", allowed.string(), code.message());
  }
  folder_ = folder;
  roots_ = std::move(roots);
  return {};
}

Result<int> ExternalData::open_below_roots(const std::string& location) {
  TRY(check_location(location));
  TRY(find_roots());
  std::error_code code;
  const fs::path path = fs::canonical(folder_ / location, code);
  if (code) return bad_model("external data '{}': {}", location, code.message());
  for (const fs::path& root : roots_)
    if (const auto steps = steps_below(root, path)) return open_below(root, *steps);
  return bad_model(
      "external data '{}' is {}, outside the model's folder (--data-root DIR allows a folder)",
      location, path.string());
}

Result<ExternalData::File> ExternalData::open(const std::string& location) {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  const int fd = location == kOwnFile ? ::open(model_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                                      : TRY(open_below_roots(location));
  if (fd < 0) return bad_model("external data '{}': {}", location, std::strerror(errno));
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return bad_model("external data '{}' is not a regular file", location);
  }
  if (files_.size() >= kMaxOpenFiles) {
    for (const auto& [name, file] : files_) ::close(file.fd);
    files_.clear();
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
