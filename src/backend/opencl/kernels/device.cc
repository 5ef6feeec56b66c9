#include "backend/opencl/kernels/device.h"

#include <map>
#include <mutex>

#include "backend/opencl/kernels/memory.h"

namespace collage::opencl {
namespace {

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (cl().GetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (cl().GetDeviceInfo(device, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.substr(0, text.find('\0'));
}

template <typename T>
T number_of(cl_device_id device, cl_device_info what, T otherwise) {
  T value = otherwise;
  return cl().GetDeviceInfo(device, what, sizeof(T), &value, nullptr) == CL_SUCCESS ? value
                                                                                    : otherwise;
}

DeviceInfo info_of(cl_platform_id platform, cl_device_id id) {
  DeviceInfo info;
  info.platform = platform;
  info.id = id;
  info.name = text_of(id, CL_DEVICE_NAME);
  info.driver = text_of(id, CL_DRIVER_VERSION);
  info.is_cpu = (number_of<cl_device_type>(id, CL_DEVICE_TYPE, 0) & CL_DEVICE_TYPE_CPU) != 0;
  info.has_doubles = number_of<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG, 0) != 0;
  info.part_alignment = number_of<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8) / 8;
  return info;
}

std::vector<DeviceInfo> find_devices() {
  std::vector<DeviceInfo> found;
  if (!opencl().ok()) return found;
  cl_uint count = 0;
  if (cl().GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return found;
  std::vector<cl_platform_id> platforms(count);
  if (cl().GetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return found;
  for (cl_platform_id platform : platforms) {
    if (cl().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (cl().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
      continue;
    for (cl_device_id id : ids)
      if (found.size() < kMostDevices &&
          number_of<cl_bool>(id, CL_DEVICE_AVAILABLE, CL_FALSE) == CL_TRUE)
        found.push_back(info_of(platform, id));
  }
  return found;
}

}  // namespace

Status checked(cl_int code, std::string_view call) {
  if (code == CL_SUCCESS) return {};
  const bool room = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                    code == CL_OUT_OF_HOST_MEMORY;
  if (room)
    return error(ErrorCode::kUnavailable, "opencl: {}: the device is out of memory ({})", call,
                 code);
  return internal_error("opencl: {} failed with code {}", call, code);
}

const std::vector<DeviceInfo>& known_devices() {
  static const auto* devices = new std::vector<DeviceInfo>(find_devices());
  return *devices;
}

Device::Device(const DeviceInfo& info, cl_context context, cl_command_queue queue)
    : info_(info), context_(context), queue_(queue), memory_(new Memory(*this)) {}

Result<Device*> Device::open(int id) {
  static auto* mutex = new std::mutex;
  static auto* opened = new std::map<int, Device*>;
  const std::vector<DeviceInfo>& known = known_devices();
  if (id < 0 || static_cast<size_t>(id) >= known.size())
    return error(ErrorCode::kUnavailable, "opencl: no device {}: {} found", id, known.size());
  const std::lock_guard lock(*mutex);
  Device*& device = (*opened)[id];
  if (device != nullptr) return device;
  const DeviceInfo& info = known[static_cast<size_t>(id)];
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(info.platform), 0};
  cl_int code = CL_SUCCESS;
  cl_context context = cl().CreateContext(properties, 1, &info.id, nullptr, nullptr, &code);
  TRY(checked(code, "clCreateContext"));
  cl_command_queue queue = cl().CreateCommandQueue(context, info.id, 0, &code);
  if (code != CL_SUCCESS) cl().ReleaseContext(context);
  TRY(checked(code, "clCreateCommandQueue"));
  device = new Device(info, context, queue);
  return device;
}

Status Device::finish() const {
  busy_ = false;
  return checked(cl().Finish(queue_), "clFinish");
}

Status Device::flush() const {
  busy_ = true;
  return checked(cl().Flush(queue_), "clFlush");
}

}  // namespace collage::opencl
