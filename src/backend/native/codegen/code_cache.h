// Compiled code of kernels: a Halide pipeline becomes an object file, the linker makes a shared
// library of it, and the library is loaded. Libraries are kept in a folder under a key that names
// everything the code depends on; each file ends with the SHA-256 of its content, and what is
// loaded is the very bytes that were checked.
//
// A folder in it, `shared`, or a link to one on a network, is a second such folder, of several
// machines. Files there end with the seal of their owner (base/user_seal.h): who may write to it
// but lacks the key runs no code here. What is compiled is put there too. A machine that cannot
// compile loads what others built.
#pragma once

#include <Halide.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/native/kernels/loaded_code.h"
#include "base/result.h"

namespace collage::native {

struct BuiltPipeline {
  Halide::Pipeline pipeline;
  std::vector<Halide::Argument> inputs;
  bool prefetches = false;  ///< the pipeline prefetches: into the caches of the core
  bool checked = false;     ///< with Halide's assertions: of a program that a user wrote
  bool strict = false;      ///< infinities and NaN are numbers like others
};

/// The instruction set kernels are compiled for: this processor's, or that of the AssumedTarget.
Halide::Target kernel_target();
/// Of a processor with those (base/processor.h).
Halide::Target target_with(const std::vector<std::string>& features);

/// While it lives this thread compiles for a processor with those; with none, for this one.
class AssumedTarget {
 public:
  explicit AssumedTarget(const std::vector<std::string>& features);
  ~AssumedTarget();
  AssumedTarget(AssumedTarget&&) = delete;
};

/// What kernels are compiled for, and what they may ask of the process.
struct CodePlatform {
  std::string name = "native";  ///< files of the cache start with it
  Halide::Target target = kernel_target();
  const std::vector<Hook>& hooks = runtime_hooks();
};

enum class PipelineText { kHalide, kAssembly };  ///< lowered loops; what the object is made of
/// For people, compiled for `kernel_target`.
Result<std::string> text_of(const BuiltPipeline& built, PipelineText form);

/// Whether it can compile kernels, or others share theirs with it.
Status kernels_available();

/// How many kernels this process has compiled: neither was their code in memory nor on disk.
int64_t compiled_kernels();

class CodeCache {
 public:
  /// An empty folder: nothing is kept on disk.
  explicit CodeCache(std::string folder, CodePlatform platform = {})
      : folder_(std::move(folder)), platform_(std::move(platform)) {}

  /// The code for `key`; built when there is none. `build` may throw Halide's exceptions.
  Result<std::shared_ptr<const Code>> get(
      const std::string& key, const std::function<Result<BuiltPipeline>()>& build) const;

 private:
  std::string folder_;
  CodePlatform platform_;
};

}  // namespace collage::native
