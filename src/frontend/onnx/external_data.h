// Weights in files beside the model. A location is resolved strictly beneath the model's folder:
// every step is opened relative to the one before it without following symbolic links, and only a
// regular file that has no other name (hard link) is read. Sizes are verified before anything is
// allocated, and data is read with pread, so a file that shrinks is an error and not a signal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

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
  Result<uint64_t> size(const std::string& location);

 private:
  struct File {
    int fd;
    uint64_t size;
  };
  Result<File> open(const std::string& location);

  std::filesystem::path folder_;
  std::map<std::string, File> files_;
};

}  // namespace collage::frontend
