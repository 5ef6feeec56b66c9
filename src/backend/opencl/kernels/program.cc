#include "backend/opencl/kernels/program.h"

#include <map>
#include <mutex>
#include <string>

#include "base/hash.h"

namespace collage::opencl {
namespace {

constexpr size_t kMostLog = 2000;  // characters of a compiler's messages that are shown

/// What the device's compiler said.
std::string build_log(cl_program program, cl_device_id device) {
  size_t bytes = 0;
  cl().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  cl().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log.substr(0, std::min(log.find('\0'), kMostLog));
}

Result<cl_program> build(const Device& device, std::string_view source) {
  const char* text = source.data();
  const size_t bytes = source.size();
  cl_int code = CL_SUCCESS;
  cl_program program = cl().CreateProgramWithSource(device.context(), 1, &text, &bytes, &code);
  TRY(checked(code, "clCreateProgramWithSource"));
  const cl_device_id id = device.info().id;
  code = cl().BuildProgram(program, 1, &id, "", nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  const std::string log = build_log(program, id);
  cl().ReleaseProgram(program);
  return internal_error("opencl: {} cannot build a kernel ({}): {}", device.info().name, code, log);
}

}  // namespace

Result<std::shared_ptr<const Program>> Program::of(const Device& device, std::string_view source) {
  static auto* mutex = new std::mutex;
  static auto* built = new std::map<std::string, std::weak_ptr<const Program>>;
  // It ends with a zero that is no part of the text.
  source = source.substr(0, source.find('\0'));
  const std::string key =
      fmt::format("{} {}", static_cast<const void*>(&device), sha256_hex(std::string(source)));
  {
    const std::lock_guard lock(*mutex);
    if (auto program = (*built)[key].lock()) return program;
  }
  std::shared_ptr<const Program> program(new Program(TRY(build(device, source))));
  const std::lock_guard lock(*mutex);
  (*built)[key] = program;
  return program;
}

}  // namespace collage::opencl
