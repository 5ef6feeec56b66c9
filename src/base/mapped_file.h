// Files mapped privately for reading: weights of models. A file that is mapped already, and has not
// changed since, is mapped once, so that equal parts of it have equal addresses in all models of
// the process.
//
// Shortening a mapped file ends the process that reads it: replace the model's file by rename, do
// not overwrite it.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"

namespace collage {

class MappedFile {
 public:
  // Maps a regular file whole; `fd` may be closed afterwards.
  static Result<std::shared_ptr<const MappedFile>> open(int fd);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MappedFile(const char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  const char* data_;
  size_t bytes_;
};

// Returns whether `data` points into a MappedFile: memory on small pages, which is slow to stream
// through.
bool lies_in_mapped_file(const void* data);

// Removes pages of mapped files from this process's memory; a later access reads them from the
// system's cache or the disk.
void forget_mapped_pages();

}  // namespace collage
