#include "simulated/memory.h"

#include <cstdint>
#include <cstring>

#include "base/stopwatch.h"

namespace collage::simulated {

void Queue::add(std::function<Status()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
}

Status Queue::wait() {
  const std::lock_guard lock(mutex_);
  std::vector<std::function<Status()>> work = std::move(work_);
  work_.clear();
  for (const auto& next : work) TRY(next());
  return {};
}

void Memory::pass(size_t bytes) const {
  if (bytes_per_second_ <= 0) return;
  const Stopwatch watch;
  while (watch.seconds() < static_cast<double>(bytes) / bytes_per_second_) continue;
}

Result<std::shared_ptr<void>> Memory::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_ - used_)
    return error(ErrorCode::kUnavailable, "{}: no room for {} bytes: {} of {} are left",
                 device_text(device_), bytes, capacity_ - used_, capacity_);
  std::shared_ptr<void> address = TRY(reserve_addresses(bytes));
  const char* begin = static_cast<char*>(address.get());
  auto contents = std::make_unique<unsigned char[]>(std::max<size_t>(bytes, 1));
  std::memset(contents.get(), 0xff, std::max<size_t>(bytes, 1));
  blocks_[begin] = {bytes, std::move(contents)};
  used_ += bytes;
  return std::shared_ptr<void>(address.get(), [this, address, begin, bytes](void*) {
    (void)queue_->wait();
    const std::lock_guard freeing(mutex_);
    blocks_.erase(begin);
    used_ -= bytes;
  });
}

void* Memory::contents(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const char*>(address);
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return nullptr;
  const auto& [begin, block] = *--it;
  const auto offset = static_cast<size_t>(at - begin);
  if (offset > block.bytes || bytes > block.bytes - offset) return nullptr;
  return block.contents.get() + offset;
}

Status Memory::write(void* to, const void* from, size_t bytes) {
  ++copies_;
  std::vector<unsigned char> data(bytes);
  if (bytes > 0) std::memcpy(data.data(), from, bytes);
  queue_->add([this, to, data = std::move(data)]() -> Status {
    void* contents = this->contents(to, data.size());
    if (contents == nullptr) return internal_error("{}: a write beside", device_text(device_));
    if (!data.empty()) std::memcpy(contents, data.data(), data.size());
    pass(data.size());
    return {};
  });
  return {};
}

Status Memory::read(void* to, const void* from, size_t bytes) {
  ++copies_;
  TRY(queue_->wait());
  const void* contents = this->contents(from, bytes);
  if (contents == nullptr) return internal_error("{}: a read beside", device_text(device_));
  if (bytes > 0) std::memcpy(to, contents, bytes);
  pass(bytes);
  return {};
}

}  // namespace collage::simulated
