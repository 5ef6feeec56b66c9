// Files whose bytes are read where they are mapped, privately and never written: weights of models.
// A file that is mapped already, and has not changed since, is mapped once, so that equal parts of
// it have equal addresses in all models of the process.
//
// As with every mapped file, whoever makes it shorter while it is in use ends the process: a new
// version of a model has to take the old one's name (rename), not its place.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"

namespace collage {

class MappedFile {
 public:
  // Of a regular file, whole; `fd` may be closed afterwards.
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

// Whether it points into a MappedFile: memory on small pages, which is slow to stream through.
bool lies_in_mapped_file(const void* data);

// Takes what was read of mapped files out of this process's memory; who reads it again has it from
// the system's cache, or the disk.
void forget_mapped_pages();

}  // namespace collage
