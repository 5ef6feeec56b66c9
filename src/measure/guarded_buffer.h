// Memory for an untrusted kernel. Each buffer lies between two inaccessible pages, and the rest of
// its own pages holds a known pattern:
//
//     | no access | pattern …        | buffer | pattern, < 64 bytes | no access |     kEnd
//     | no access | buffer | pattern …                              | no access |     kBegin
//
// Buffers begin at a multiple of 64 bytes. An access beyond them by at least 64 bytes behind (kEnd)
// or by a byte before (kBegin) kills the process, in a worker after naming the buffer (see
// report_faults_to); `check` finds a nearer write.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace collage {

class GuardedBuffer {
 public:
  enum class Side { kEnd, kBegin };  // which end of the buffer touches a page without access

  // `name`, at most 31 characters, is for messages: "output 0".
  static Result<GuardedBuffer> allocate(size_t bytes, Side side, const std::string& name);
  GuardedBuffer() = default;  // empty: data() is null
  GuardedBuffer(GuardedBuffer&& other) noexcept { swap(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedBuffer();

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void fill(unsigned char byte);
  // Makes writes kill the process from now on, as an access beyond the buffer does.
  void make_read_only();
  // Checks that the pattern around the buffer is whole; the error states on which side it was
  // written.
  Status check() const;

 private:
  void swap(GuardedBuffer& other) noexcept;
  char* begin_ = nullptr;  // of the mapping, first guard page included
  size_t mapped_ = 0;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  int slot_ = -1;  // in the table that fault reports look at
};

// Makes a fatal access write one line of JSON to `fd`, {"fault": "accessed memory behind output
// 0"}, before it kills the process. `before`, if any, is called first, in the signal's
// handler. For the worker.
void report_faults_to(int fd, void (*before)() = nullptr);

}  // namespace collage
