// Weights in files beside the model. A location is resolved strictly beneath the model's folder:
// every step is opened relative to the one before it without following symbolic links, and only a
// regular file that has no other name (hard link) is read. Sizes are verified before anything is
// allocated or mapped; what is read with `read` is read with pread, so that a file that shrinks is
// an error and not a signal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"

namespace collage::frontend {

class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // That the file can be read and holds [offset, offset + length).
  Status check(const std::string& location, uint64_t offset, uint64_t length);
  Status read(const std::string& location, uint64_t offset, uint64_t length, void* target);
  // The same where the file is mapped, which it stays as long as what comes back is held. Fails
  // where it cannot be mapped: it may be read then.
  Result<std::shared_ptr<const void>> map(const std::string& location, uint64_t offset,
                                          uint64_t length);
  Result<uint64_t> size(const std::string& location);

 private:
  struct File {
    int fd;
    uint64_t size;
    std::shared_ptr<const MappedFile> mapped = nullptr;  // once it was asked for
  };
  Result<File> open(const std::string& location);

  std::filesystem::path folder_;
  std::map<std::string, File> files_;
};

}  // namespace collage::frontend
