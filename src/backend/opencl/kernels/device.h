// The OpenCL devices of this machine, of all platforms in the loader's order. One is opened when it
// is first used: a context, and one queue that does its work in order.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "backend/opencl/kernels/libraries.h"
#include "base/result.h"

namespace collage::opencl {

inline constexpr char kDeviceKind[] = "opencl";
inline constexpr int kMostDevices = 16;  ///< that are used

struct DeviceInfo {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string name, driver;
  bool is_cpu = false;
  bool has_doubles = false;   ///< computes with float64
  size_t part_alignment = 1;  ///< bytes that the begin of a sub-buffer is a multiple of
};

/// Looked for once, when first asked for; none where OpenCL cannot be loaded.
const std::vector<DeviceInfo>& known_devices();

/// An error that says what was called and what OpenCL answered.
Status checked(cl_int code, std::string_view call);

class Memory;

class Device {
 public:
  /// Lives for the rest of the process. Number `id` of known_devices().
  static Result<Device*> open(int id);

  const DeviceInfo& info() const { return info_; }
  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }
  Memory& memory() const { return *memory_; }
  Status finish() const;
  /// Whether something was begun that nobody has waited for since.
  bool is_busy() const { return busy_; }
  /// Hands what was enqueued to the device.
  Status flush() const;

 private:
  Device(const DeviceInfo& info, cl_context context, cl_command_queue queue);
  DeviceInfo info_;
  cl_context context_;
  cl_command_queue queue_;
  Memory* memory_;
  mutable std::atomic<bool> busy_{false};
};

}  // namespace collage::opencl
