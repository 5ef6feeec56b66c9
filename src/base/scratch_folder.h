// A folder of temporary files that disappears with the object. What processes leave that were
// killed, the next one that makes such a folder removes.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace collage {

class ScratchFolder {
 public:
  // Below `parent`, the user's alone; its name begins with `prefix`, by which folders of one kind
  // are told from others': those of this user that no living process holds are removed.
  static Result<ScratchFolder> create(const std::filesystem::path& parent,
                                      const std::string& prefix);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_;  // of the folder: the system lets go of it when the process ends, however it does
};

}  // namespace collage
