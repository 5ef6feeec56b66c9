// A compiled kernel as a shared library in memory, loaded into the process without a file.
#pragma once

#include <memory>

#include "base/result.h"
#include "runtime/saved_kernel.h"

namespace collage::native {

/// The function that kernels are compiled as, and what is called: its form that takes an array of
/// arguments.
inline constexpr char kSymbol[] = "collage_kernel", kEntry[] = "collage_kernel_argv";

class Code {
 public:
  static Result<std::shared_ptr<const Code>> load(SharedBytes library);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// One halide_buffer_t* an argument.
  int call(void** args) const { return function_(args); }
  const SharedBytes& library() const { return library_; }

 private:
  Code(SharedBytes library, void* handle, int (*function)(void**))
      : library_(std::move(library)), handle_(handle), function_(function) {}
  SharedBytes library_;
  void* handle_;
  int (*function_)(void**);
};

}  // namespace collage::native
