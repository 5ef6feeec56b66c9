// A file in memory that has no name: for libraries and programs that write to files alone. No disk
// can be full, and nothing is left behind when a process is killed.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace collage {

class MemoryFile {
 public:
  // An empty one that up to `most_bytes` will be written to. `name` is what /proc shows.
  // kUnavailable where the machine has no memory for it, or where this process may not write files
  // of that size (ulimit -f).
  static Result<MemoryFile> create(const char* name, size_t most_bytes);
  // One of that content.
  static Result<MemoryFile> of(const char* name, std::string_view content);
  MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  int descriptor() const { return descriptor_; }
  // Good in this process, and in a tool that inherits the descriptor (run_tool).
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  Result<std::string> content() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace collage
