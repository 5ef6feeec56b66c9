// A nameless file in memory, for libraries and programs that only write files. It needs no disk
// space, and nothing is left behind when a process is killed.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace collage {

class MemoryFile {
 public:
  // Makes an empty file for up to `most_bytes`. `name` is shown in /proc. kUnavailable: the machine
  // has no memory for it, or this process may not write files of that size (ulimit -f).
  static Result<MemoryFile> create(const char* name, size_t most_bytes);
  // Makes a file with that content.
  static Result<MemoryFile> of(const char* name, std::string_view content);
  MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  int descriptor() const { return descriptor_; }
  // Valid in this process, and in a tool that inherits the descriptor (run_tool).
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  Result<std::string> content() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace collage
