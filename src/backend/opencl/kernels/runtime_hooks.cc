#include "backend/opencl/kernels/runtime_hooks.h"

#include <HalideRuntime.h>

#include "backend/opencl/kernels/launcher.h"

namespace collage::opencl {
namespace {

// Nobody follows it: buffers are told apart from those without a device by its address alone.
const halide_device_interface_t* device_interface() {
  static const halide_device_interface_t interface {};
  return &interface;
}

int initialise_kernels(void*, void** state, const char* source, int bytes) {
  static char any;
  *state = &any;
  Launcher::current()->use_source(source, static_cast<size_t>(bytes));
  return 0;
}

void finalise_kernels(void*, void*) {}

int launch(void*, void*, const char* function, int blocks_x, int blocks_y, int blocks_z,
           int threads_x, int threads_y, int threads_z, int shared_bytes, size_t* sizes,
           void** arguments, int8_t* are_buffers) {
  Launcher::current()->launch(function,
                              {{blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}},
                              shared_bytes, sizes, arguments, are_buffers);
  return 0;
}

int allocate(void*, halide_buffer_t* buffer, const halide_device_interface_t* interface) {
  Launcher::current()->allocate(*buffer);
  buffer->device_interface = interface;
  return 0;
}

int free_memory(void*, halide_buffer_t* buffer) {
  Launcher::current()->free(*buffer);
  return 0;
}

void destroy_memory(void*, void* buffer) {
  free_memory(nullptr, static_cast<halide_buffer_t*>(buffer));
}

// Every stage runs on the device, so there is nothing to copy.
int copy_to_device(void*, halide_buffer_t* buffer, const halide_device_interface_t*) {
  if (buffer->host_dirty())
    Launcher::current()->fail(internal_error("opencl: a stage was computed on the host"));
  return 0;
}

int copy_to_host(void*, halide_buffer_t*) {
  Launcher::current()->fail(internal_error("opencl: a stage on the host reads one of the device"));
  return 0;
}

int synchronise(void*, halide_buffer_t*) { return 0; }

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const std::vector<native::Hook>& runtime_hooks() {
  static const auto* hooks = [] {
    auto* all = new std::vector<native::Hook>(native::runtime_hooks());
    const native::Hook own[] = {
        {"halide_opencl_device_interface", address(device_interface)},
        {"halide_opencl_initialize_kernels", address(initialise_kernels)},
        {"halide_opencl_finalize_kernels", address(finalise_kernels)},
        {"halide_opencl_run", address(launch)},
        {"halide_device_malloc", address(allocate)},
        {"halide_device_and_host_malloc", address(allocate)},
        {"halide_device_free", address(free_memory)},
        {"halide_device_and_host_free", address(free_memory)},
        {"halide_device_free_as_destructor", address(destroy_memory)},
        {"halide_device_and_host_free_as_destructor", address(destroy_memory)},
        {"halide_copy_to_device", address(copy_to_device)},
        {"halide_copy_to_host", address(copy_to_host)},
        {"halide_device_sync", address(synchronise)}};
    all->insert(all->end(), std::begin(own), std::end(own));
    return all;
  }();
  return *hooks;
}

}  // namespace collage::opencl
