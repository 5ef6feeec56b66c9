// SavedKernel: what a process that did not compile a kernel makes it again from: the loader's name,
// a description that only the loader reads, packed constants and compiled objects. Rooms that make
// kernels register a loader; an artifact (docs/artifact.md) holds nothing else of a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

class Kernel;
struct Plan;

// Memory with another owner: a kernel's packed weights, or a part of a mapped file.
struct SharedBytes {
  std::shared_ptr<const void> data;  // aligned to 64 bytes, readable for 64 bytes beyond the end
  size_t bytes = 0;
  std::string_view text() const { return {static_cast<const char*>(data.get()), bytes}; }
};

// The buffers that a loaded kernel will be run with: their sizes, and their devices.
struct BufferSizes {
  std::vector<size_t> inputs, outputs;
  std::vector<VirtualDevice> input_devices = {}, output_devices = {};  // empty: all on the host
  // kBadModel unless there is an input (output) of that number with at least that many bytes on
  // that device.
  Status input_holds(size_t index, size_t bytes, const VirtualDevice& device = {}) const;
  Status output_holds(size_t index, size_t bytes, const VirtualDevice& device = {}) const;
};

struct SavedKernel {
  std::string loader;       // its name
  std::string description;  // JSON
  std::vector<SharedBytes> constants;
  std::vector<SharedBytes> objects;  // code and whatever else a library made
  BufferSizes buffers = {};          // set by the loading code; `save` leaves it empty
  // That it runs: a loop's body, the branches of a condition.
  std::vector<std::shared_ptr<const Plan>> plans = {};
};

struct KernelLoader {
  std::string name;
  // Version of the library behind it and of the description's form: kernels saved under another are
  // refused.
  std::string version;
  // Makes the kernel for a team of that many threads. Constants are used where they are. The loader
  // checks the description before it takes memory or computes with it: for any content, the answer
  // is an error or a kernel that stays within `saved.buffers` and its constants.
  std::function<Result<std::shared_ptr<Kernel>>(const SavedKernel& saved, int threads)> load;
  // Whether kernels may be loaded on several temporary threads at once, each bound to a core: for
  // libraries without thread-local state whose loading is slow.
  bool on_any_thread = false;
};

// Registers a loader for the rest of the process. A second one of that name is ignored.
void register_kernel_loader(KernelLoader loader);
const KernelLoader* find_kernel_loader(std::string_view name);  // null if there is none

}  // namespace collage
