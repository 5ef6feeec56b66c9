// OpenCL source, built for a device. Programs of equal source are built once while one lives.
#pragma once

#include <memory>
#include <string_view>

#include "backend/opencl/kernels/device.h"

namespace collage::opencl {

class Program {
 public:
  static Result<std::shared_ptr<const Program>> of(const Device& device, std::string_view source);
  ~Program() { cl().ReleaseProgram(handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  cl_program handle() const { return handle_; }

 private:
  explicit Program(cl_program handle) : handle_(handle) {}
  cl_program handle_;
};

}  // namespace collage::opencl
