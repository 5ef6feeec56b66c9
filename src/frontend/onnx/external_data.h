// Weights in files beside the model, and those that were left in its own file (large_weights.h). A
// location is a relative path below the model's folder.
// Symbolic links may lead elsewhere, as in models of the cache of Hugging Face:
//
//   models--ORG--NAME/snapshots/REVISION/model.onnx_data -> ../../blobs/HASH
//
// Their target must be a regular file inside the model's folder, inside `blobs` or `snapshots` of
// such a cache that holds the model's folder, or inside a root that the user allows. It is opened
// step by step from there without following links, so that a checked path cannot be exchanged.
// Sizes are verified before anything is allocated or mapped; `read` uses pread, so that a file that
// shrinks is an error and not a signal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace collage::frontend {

class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path model, std::vector<std::filesystem::path> roots = {})
      : model_(std::move(model)), folder_(model_.parent_path()), allowed_(std::move(roots)) {}
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // Checks that the file can be read and holds [offset, offset + length).
  Status check(const std::string& location, uint64_t offset, uint64_t length);
  Status read(const std::string& location, uint64_t offset, uint64_t length, void* target);
  // Maps that part of the file, for as long as the result is held. Fails if it cannot be mapped; it
  // may be read then.
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
  // Returns a descriptor.
  Result<int> open_below_roots(const std::string& location);
  Status find_roots();

  std::filesystem::path model_;
  std::filesystem::path folder_;  // the model's; without links once the roots were found
  std::vector<std::filesystem::path> allowed_;
  std::vector<std::filesystem::path> roots_;  // of files that may be read, without links
  std::map<std::string, File> files_;
};

}  // namespace collage::frontend
