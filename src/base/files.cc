#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/output_file.h"

namespace collage {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return bad_model("{}: is a folder, not a file", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_model("{}: {}", path.string(), std::strerror(errno));
  std::ostringstream content;
  content << in.rdbuf();
  if (in.bad()) return bad_model("{}: read failed", path.string());
  return std::move(content).str();
}

bool write_all(int fd, const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = ::write(fd, next, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    next += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  OutputFile file = TRY(OutputFile::create(path));
  if (!write_all(file.descriptor(), content.data(), content.size()))
    return internal_error("{}: {}", path.string(), std::strerror(errno));
  return file.publish();
}

Result<fs::path> cache_folder() {
  fs::path folder;
  if (const char* own = std::getenv("COLLAGE_CACHE"); own && *own) {
    folder = own;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    folder = fs::path(xdg) / "collage";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = fs::path(home) / ".cache" / "collage";
  } else {
    return internal_error("no cache folder: neither COLLAGE_CACHE, XDG_CACHE_HOME nor HOME is set");
  }
  std::error_code ec;
  if (!fs::exists(folder, ec)) {
    fs::create_directories(folder.parent_path(), ec);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return internal_error("cache folder {}: {}", folder.string(), std::strerror(errno));
  }
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0)
    return internal_error("cache folder {}: {}", folder.string(), std::strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return internal_error("cache folder {}: not a folder", folder.string());
  if (info.st_uid != ::geteuid())
    return internal_error("cache folder {}: belongs to another user", folder.string());
  if ((info.st_mode & 022) != 0)
    return internal_error("cache folder {}: writable by others (chmod 700 it)", folder.string());
  if (::access(folder.c_str(), W_OK) != 0)
    return internal_error("cache folder {}: {}", folder.string(), std::strerror(errno));
  return folder;
}

}  // namespace collage
