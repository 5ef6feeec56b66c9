#include "backend/opencl/kernels/launcher.h"

#include <algorithm>

#include "backend/opencl/kernels/memory.h"

namespace collage::opencl {

thread_local Launcher* Launcher::current_ = nullptr;

Launcher::~Launcher() {
  for (const auto& [name, function] : functions_) cl().ReleaseKernel(function);
}

void Launcher::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void Launcher::use_source(const char* text, size_t bytes) {
  if (source_ == text && program_ != nullptr) return;
  Result<std::shared_ptr<const Program>> built = Program::of(device_, {text, bytes});
  if (!built.ok()) return fail(built.status());
  source_ = text;
  program_ = std::move(built).value();
}

Result<cl_kernel> Launcher::function_of(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  if (program_ == nullptr) return internal_error("opencl: {} has no source", name);
  cl_int code = CL_SUCCESS;
  cl_kernel function = cl().CreateKernel(program_->handle(), name.c_str(), &code);
  TRY(checked(code, "clCreateKernel"));
  functions_[name] = function;
  return function;
}

Status Launcher::enqueue(const char* function, const Grid& grid, int shared_bytes,
                         const size_t* sizes, void* const* arguments, const int8_t* are_buffers) {
  cl_kernel kernel = TRY(function_of(function));
  cl_uint next = 0;
  for (; sizes[next] != 0; ++next) {
    if (are_buffers[next] == 0) {
      TRY(checked(cl().SetKernelArg(kernel, next, sizes[next], arguments[next]), "clSetKernelArg"));
      continue;
    }
    const auto& buffer = *static_cast<const halide_buffer_t*>(arguments[next]);
    cl_mem memory = TRY(device_.memory().buffer(reinterpret_cast<const void*>(buffer.device),
                                                buffer.size_in_bytes()));
    TRY(checked(cl().SetKernelArg(kernel, next, sizeof(memory), &memory), "clSetKernelArg"));
  }
  // The last one is memory that a group shares, of which there is a byte at least.
  TRY(checked(
      cl().SetKernelArg(kernel, next, static_cast<size_t>(std::max(shared_bytes, 1)), nullptr),
      "clSetKernelArg"));
  size_t all[3], group[3];
  for (size_t d = 0; d < 3; ++d) {
    group[d] = static_cast<size_t>(grid.threads[d]);
    all[d] = group[d] * static_cast<size_t>(grid.blocks[d]);
  }
  return checked(cl().EnqueueNDRangeKernel(device_.queue(), kernel, 3, nullptr, all, group, 0,
                                           nullptr, nullptr),
                 "clEnqueueNDRangeKernel");
}

void Launcher::launch(const char* function, const Grid& grid, int shared_bytes, const size_t* sizes,
                      void* const* arguments, const int8_t* are_buffers) {
  // What ran before may have left memory without content.
  if (!status_.ok()) return;
  fail(enqueue(function, grid, shared_bytes, sizes, arguments, are_buffers));
}

void Launcher::allocate(halide_buffer_t& buffer) {
  if (buffer.device != 0) return;
  Result<void*> memory = device_.memory().take_scratch(buffer.size_in_bytes());
  if (!memory.ok()) return fail(memory.status());
  buffer.device = reinterpret_cast<uint64_t>(*memory);
}

void Launcher::free(halide_buffer_t& buffer) {
  if (buffer.device == 0) return;
  device_.memory().give_back(reinterpret_cast<void*>(buffer.device));
  buffer.device = 0;
}

}  // namespace collage::opencl
