#include "base/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace collage {

namespace fs = std::filesystem;

namespace {

constexpr int kFolderAttempts = 100;
constexpr std::string_view kUnknown = "XXXXXX";  // what mkdtemp chooses

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Whether the path still is what the descriptor is.
bool is_same(const fs::path& path, int descriptor) {
  struct stat by_name {
  }, by_descriptor{};
  return ::lstat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino;
}

// Removes the folder if it is this user's, and no process holds its lock.
void remove_if_left(const fs::path& path) {
  const int folder = open_folder(path);
  if (folder < 0) return;
  struct stat info {};
  if (::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() &&
      ::flock(folder, LOCK_EX | LOCK_NB) == 0) {
    std::error_code code;
    fs::remove_all(path, code);
  }
  ::close(folder);
}

// Once a process for each parent and prefix.
void remove_what_is_left(const fs::path& parent, const std::string& prefix) {
  static std::mutex mutex;
  static auto* const cleaned = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!cleaned->insert(parent / prefix).second) return;
  }
  std::error_code code;
  for (fs::directory_iterator entry(parent, code), end; !code && entry != end;
       entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (name.size() == prefix.size() + kUnknown.size() && name.starts_with(prefix))
      remove_if_left(entry->path());
  }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::create(const fs::path& parent, const std::string& prefix) {
  remove_what_is_left(parent, prefix);
  // Between its making and its lock another process may take the folder for one that was left.
  for (int attempt = 0; attempt < kFolderAttempts; ++attempt) {
    std::string path = (parent / (prefix + std::string(kUnknown))).string();
    if (::mkdtemp(path.data()) == nullptr)
      return internal_error("cannot make a temporary folder in {}: {}", parent.string(),
                            std::strerror(errno));
    const int folder = open_folder(path);
    if (folder < 0) continue;
    // Where the file system has no locks, none is held, and nothing is removed either.
    const bool is_taken = ::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && is_same(path, folder)) return ScratchFolder(path, folder);
    ::close(folder);
  }
  return internal_error("cannot make a temporary folder in {}", parent.string());
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, fs::path())), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace collage
