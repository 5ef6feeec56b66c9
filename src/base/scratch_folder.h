// A folder of temporary files that disappears with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace collage {

class ScratchFolder {
 public:
  // Below `parent`; its name begins with `prefix`.
  static Result<ScratchFolder> create(const std::filesystem::path& parent,
                                      const std::string& prefix) {
    std::string pattern = (parent / (prefix + "XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr)
      return internal_error("cannot make a temporary folder in {}", parent.string());
    return ScratchFolder(pattern);
  }
  ScratchFolder(ScratchFolder&& other) noexcept { path_.swap(other.path_); }
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code code;
    if (!path_.empty()) std::filesystem::remove_all(path_, code);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace collage
