// A compiled kernel as a shared library in memory, loaded into the process without a file.
#pragma once

#include <memory>
#include <vector>

#include "backend/native/kernels/runtime_hooks.h"
#include "base/result.h"
#include "runtime/saved_kernel.h"

namespace collage::native {

/// The function that kernels are compiled as, and what is called: its form that takes an array of
/// arguments.
inline constexpr char kSymbol[] = "collage_kernel", kEntry[] = "collage_kernel_argv";

class Code {
 public:
  /// `hooks`: those that it was linked with, in that order.
  static Result<std::shared_ptr<const Code>> load(SharedBytes library,
                                                  const std::vector<Hook>& hooks = runtime_hooks());
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// One halide_buffer_t* an argument.
  int call(void** args) const { return call_compiled(function_, args); }
  const SharedBytes& library() const { return library_; }

 private:
  Code(SharedBytes library, void* handle, int (*function)(void**))
      : library_(std::move(library)), handle_(handle), function_(function) {}
  SharedBytes library_;
  void* handle_;
  int (*function_)(void**);
};

/// Kernels of equal code share it.
Result<std::shared_ptr<const Code>> shared_code(const SharedBytes& library,
                                                const std::vector<Hook>& hooks = runtime_hooks());

}  // namespace collage::native
