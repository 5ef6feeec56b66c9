#include "backend/opencl/kernels/staging.h"

#include <cstring>

namespace collage::opencl {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of all blocks of a device

bool is_done(cl_event event) {
  cl_int status = CL_QUEUED;
  const cl_int code =
      cl().GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  return code == CL_SUCCESS && status <= CL_COMPLETE;  // below: it failed
}

}  // namespace

Result<Staging::Block*> Staging::idle_block(size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.last != nullptr && is_done(block.last)) {
      cl().ReleaseEvent(block.last);
      block.last = nullptr;
    }
    if (block.last == nullptr && block.bytes >= bytes &&
        (best == nullptr || block.bytes < best->bytes))
      best = &block;
  }
  if (best != nullptr || bytes > kMostBytes - bytes_) return best;
  Block made;
  made.bytes = bytes;
  cl_int code = CL_SUCCESS;
  made.buffer = cl().CreateBuffer(device_.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  bytes, nullptr, &code);
  TRY(checked(code, "clCreateBuffer"));
  made.mapped =
      cl().EnqueueMapBuffer(device_.queue(), made.buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                            bytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) cl().ReleaseMemObject(made.buffer);
  TRY(checked(code, "clEnqueueMapBuffer"));
  bytes_ += bytes;
  return &blocks_.emplace_back(made);
}

Result<bool> Staging::write(cl_mem to, size_t begin, const void* from, size_t bytes) {
  const std::lock_guard lock(mutex_);
  Block* block = TRY(idle_block(bytes));
  if (block == nullptr) return false;
  std::memcpy(block->mapped, from, bytes);
  TRY(checked(cl().EnqueueWriteBuffer(device_.queue(), to, CL_FALSE, begin, bytes, block->mapped, 0,
                                      nullptr, &block->last),
              "clEnqueueWriteBuffer"));
  return true;
}

}  // namespace collage::opencl
