// Launcher: does on a device what a compiled kernel's host code asks for: builds the source that it
// carries, launches functions of it, and provides memory for what lies between them. Host code
// calls hooks (runtime_hooks.h); they find the launcher of the kernel that runs on this thread.
#pragma once

#include <HalideRuntime.h>

#include <map>
#include <memory>
#include <string>

#include "backend/opencl/kernels/device.h"
#include "backend/opencl/kernels/program.h"

namespace collage::opencl {

/// Work-groups, and threads of each.
struct Grid {
  int blocks[3];
  int threads[3];
};

class Launcher {
 public:
  explicit Launcher(Device& device) : device_(device) {}
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Makes this the launcher of the thread while `host_code` runs; the first error of what that
  /// asks for.
  template <typename HostCode>
  Status run(const HostCode& host_code) {
    status_ = {};
    Launcher* const before = current_;
    current_ = this;
    host_code();
    current_ = before;
    return status_;
  }
  static Launcher* current() { return current_; }

  void use_source(const char* text, size_t bytes);
  /// As host code describes arguments: lists that end with a size of 0. Those that are buffers are
  /// halide_buffer_t with an address of the device's memory.
  void launch(const char* function, const Grid& grid, int shared_bytes, const size_t* sizes,
              void* const* arguments, const int8_t* are_buffers);
  void allocate(halide_buffer_t& buffer);
  void free(halide_buffer_t& buffer);
  /// Remembers an error unless there is one already.
  void fail(Status status);

 private:
  Result<cl_kernel> function_of(const std::string& name);
  Status enqueue(const char* function, const Grid& grid, int shared_bytes, const size_t* sizes,
                 void* const* arguments, const int8_t* are_buffers);

  static thread_local Launcher* current_;
  Device& device_;
  const char* source_ = nullptr;
  std::shared_ptr<const Program> program_;
  std::map<std::string, cl_kernel, std::less<>> functions_;
  Status status_;
};

}  // namespace collage::opencl
