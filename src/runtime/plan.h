// Plan: the flat program the runtime executes: kernels in order over numbered buffers. The place of
// each buffer is fixed when the plan is made; running allocates nothing and computes no shape.
//
//   buffers  0: input x   1: arena @0   2: constant   3: output y
//   steps    conv(0, 2) -> 1      softmax(1) -> 3
//
// There is one arena on the host and one on each other virtual device that a buffer's encoding
// names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/encoding.h"
#include "runtime/kernel.h"
#include "runtime/tensor_type.h"

namespace collage {

using BufferId = size_t;

struct Buffer {
  enum class Place {
    kInput,     // the caller's tensor number `index`
    kOutput,    // the caller's result tensor number `index`
    kConstant,  // `constant`, which the plan owns
    kArena,     // at `offset` in the arena of its encoding's device
    kPart,      // `offset` bytes into buffer `index`, which is no part itself
  };
  Place place = Place::kArena;
  size_t index = 0;
  size_t offset = 0;  // bytes, a multiple of kArenaAlignment
  size_t bytes = 0;
  TensorType type;
  Encoding encoding;
  Tensor constant;
};

struct Step {
  std::string name;    // unique in the plan; the same in reports, traces and logs
  std::string target;  // backend that runs it; "" for conversions and copies
  std::shared_ptr<Kernel> kernel;
  std::vector<BufferId> inputs, outputs;
  size_t workspace_offset = 0;  // in the arena; meaningful when the kernel asks for workspace
  VirtualDevice device = {};    // on which it runs: its workspace lies in its memory
  bool has_effects = false;     // which are in the order of such steps (ir/effects.h)
};

struct PlanSignature {
  std::string name;
  TensorType type;
};

inline constexpr size_t kArenaAlignment = 64;
// Alignment of parts of a device's memory that its kernels get; no known OpenCL device needs more.
inline constexpr size_t kDeviceArenaAlignment = 512;

struct DeviceArena {
  VirtualDevice device;
  size_t bytes = 0;
};

struct Plan {
  std::vector<PlanSignature> inputs, outputs;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  size_t arena_bytes = 0;                  // the host's
  std::vector<DeviceArena> device_arenas;  // of other devices, each once
};

}  // namespace collage
