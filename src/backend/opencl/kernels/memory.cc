#include "backend/opencl/kernels/memory.h"

#include <algorithm>

namespace collage::opencl {
namespace {

constexpr size_t kMostIdle = 16;  // blocks of scratch memory that are kept

class LazyMemory : public DeviceMemory {
 public:
  explicit LazyMemory(int id) : id_(id) {}
  Result<std::shared_ptr<void>> allocate(size_t bytes) override {
    return TRY(memory())->allocate(bytes);
  }
  Status write(void* to, const void* from, size_t bytes) override {
    return TRY(memory())->write(to, from, bytes);
  }
  Status read(void* to, const void* from, size_t bytes) override {
    return TRY(memory())->read(to, from, bytes);
  }
  Status synchronise() override { return TRY(memory())->synchronise(); }

 private:
  Result<Memory*> memory() const {
    Device* device = TRY(Device::open(id_));
    return &device->memory();
  }
  int id_;
};

}  // namespace

std::shared_ptr<DeviceMemory> memory_of_device(int id) { return std::make_shared<LazyMemory>(id); }

Result<std::shared_ptr<void>> Memory::allocate(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  Allocation made;
  made.addresses = TRY(reserve_addresses(bytes));
  made.bytes = bytes;
  cl_int code = CL_SUCCESS;
  made.whole = cl().CreateBuffer(device_.context(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
  if (code == CL_INVALID_BUFFER_SIZE)
    return error(ErrorCode::kUnavailable, "opencl: the device has no buffers of {} bytes", bytes);
  TRY(checked(code, "clCreateBuffer"));
  void* begin = made.addresses.get();
  const std::lock_guard lock(mutex_);
  allocations_[begin] = std::move(made);
  return std::shared_ptr<void>(begin, [this](void* address) { release(address); });
}

void Memory::release(void* begin) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(begin);
  if (found == allocations_.end()) return;
  // The objects go once the work that was begun with them is done.
  for (const auto& [place, part] : found->second.parts) cl().ReleaseMemObject(part);
  cl().ReleaseMemObject(found->second.whole);
  allocations_.erase(found);
}

Result<std::pair<Memory::Allocation*, size_t>> Memory::find(const void* address, size_t bytes) {
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    Allocation& allocation = std::prev(after)->second;
    const auto offset = static_cast<size_t>(static_cast<const char*>(address) -
                                            static_cast<const char*>(std::prev(after)->first));
    if (offset <= allocation.bytes && bytes <= allocation.bytes - offset)
      return std::pair(&allocation, offset);
  }
  return internal_error("opencl: {} bytes at an address that is not the device's", bytes);
}

Result<std::pair<cl_mem, size_t>> Memory::place(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto [allocation, offset] = TRY(find(address, bytes));
  return std::pair(allocation->whole, offset);
}

Result<cl_mem> Memory::buffer(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto [allocation, offset] = TRY(find(address, bytes));
  if (offset == 0) return allocation->whole;
  cl_mem& part = allocation->parts[{offset, bytes}];
  if (part != nullptr) return part;
  if (offset % device_.info().part_alignment != 0)
    return internal_error("opencl: a tensor at offset {}, which is no multiple of {}", offset,
                          device_.info().part_alignment);
  const cl_buffer_region region{offset, bytes};
  cl_int code = CL_SUCCESS;
  part = cl().CreateSubBuffer(allocation->whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                              &region, &code);
  TRY(checked(code, "clCreateSubBuffer"));
  return part;
}

Status Memory::write(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  const auto [whole, begin] = TRY(place(to, bytes));
  if (device_.is_busy() && TRY(staging_.write(whole, begin, from, bytes))) return device_.flush();
  return checked(cl().EnqueueWriteBuffer(device_.queue(), whole, CL_TRUE, begin, bytes, from, 0,
                                         nullptr, nullptr),
                 "clEnqueueWriteBuffer");
}

Status Memory::read(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  const auto [whole, begin] = TRY(place(from, bytes));
  return checked(cl().EnqueueReadBuffer(device_.queue(), whole, CL_TRUE, begin, bytes, to, 0,
                                        nullptr, nullptr),
                 "clEnqueueReadBuffer");
}

Status Memory::synchronise() { return device_.finish(); }

Result<void*> Memory::take_scratch(size_t bytes) {
  const std::lock_guard lock(scratch_mutex_);
  size_t best = idle_.size();
  for (size_t i = 0; i < idle_.size(); ++i) {
    if (idle_[i].bytes < bytes || idle_[i].bytes / 4 > bytes) continue;
    if (best == idle_.size() || idle_[i].bytes < idle_[best].bytes) best = i;
  }
  if (best < idle_.size()) {
    used_.push_back(std::move(idle_[best]));
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
  } else {
    used_.push_back({TRY(allocate(bytes)), bytes});
  }
  return used_.back().memory.get();
}

void Memory::give_back(void* scratch) {
  const std::lock_guard lock(scratch_mutex_);
  const auto found = std::find_if(used_.begin(), used_.end(),
                                  [&](const Scratch& s) { return s.memory.get() == scratch; });
  if (found == used_.end()) return;
  idle_.push_back(std::move(*found));
  used_.erase(found);
  if (idle_.size() > kMostIdle) idle_.erase(idle_.begin());
}

}  // namespace collage::opencl
