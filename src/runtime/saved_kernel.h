// SavedKernel: a kernel as a process that did not compile it makes it again: who makes it, a
// description that only they read, constants in their final form and compiled objects. Whoever can
// make kernels of such registers a loader; an artifact (docs/artifact.md) holds nothing else of a
// kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace collage {

class Kernel;

// Memory that somebody else holds: a kernel's packed weights, or a part of a mapped file.
struct SharedBytes {
  std::shared_ptr<const void> data;  // aligned to 64 bytes, readable for 64 bytes beyond the end
  size_t bytes = 0;
  std::string_view text() const { return {static_cast<const char*>(data.get()), bytes}; }
};

struct SavedKernel {
  std::string loader;       // its name
  std::string description;  // JSON
  std::vector<SharedBytes> constants;
  std::vector<SharedBytes> objects;  // code and whatever else a library made
};

struct KernelLoader {
  std::string name;
  // Of the library behind it and of the description's form: kernels saved under another are
  // refused.
  std::string version;
  // Of a team of that many threads. Constants are used where they are. What the description says is
  // checked: whatever it holds, the answer is a kernel or an error.
  std::function<Result<std::shared_ptr<Kernel>>(const SavedKernel& saved, int threads)> load;
};

// Loaders live for the rest of the process. A second one of that name is ignored.
void register_kernel_loader(KernelLoader loader);
const KernelLoader* find_kernel_loader(std::string_view name);  // null where there is none

}  // namespace collage
