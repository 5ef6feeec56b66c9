// A folder of temporary files that is removed with the object. Folders of killed processes are
// removed when the next one of the kind is made.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace collage {

class ScratchFolder {
 public:
  // Makes a folder below `parent` that only the user can access. Its name begins with `prefix`,
  // which identifies the kind: folders of this kind and user that no living process holds are
  // removed.
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
