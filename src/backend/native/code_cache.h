// Compiled code of kernels: a Halide pipeline becomes an object file, the linker makes a shared
// library of it, and the library is loaded. Libraries are kept in a folder under a key that names
// everything the code depends on; each file ends with the SHA-256 of its content, and what is
// loaded is the very bytes that were checked.
#pragma once

#include <Halide.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/native/loaded_code.h"

namespace collage::native {

struct BuiltPipeline {
  Halide::Pipeline pipeline;
  std::vector<Halide::Argument> inputs;
  bool prefetches = false;  ///< the pipeline prefetches: into the caches of the core
  bool checked = false;     ///< with Halide's assertions: of a program that a user wrote
  bool strict = false;      ///< infinities and NaN are numbers like others
};

/// The instruction set kernels are compiled for: this processor's.
Halide::Target kernel_target();

class CodeCache {
 public:
  /// An empty folder: nothing is kept on disk.
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}

  /// The code for `key`; built when there is none. `build` may throw Halide's exceptions.
  Result<std::shared_ptr<const Code>> get(
      const std::string& key, const std::function<Result<BuiltPipeline>()>& build) const;

 private:
  std::string folder_;
};

}  // namespace collage::native
