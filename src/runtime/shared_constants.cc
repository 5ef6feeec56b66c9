#include "runtime/shared_constants.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/block_sum.h"
#include "base/mapped_file.h"

namespace collage {

namespace {

struct Known {
  std::weak_ptr<const void> data;
  size_t bytes = 0;
  bool padded = false;  // readable beyond the end
};

class Pool {
 public:
  std::shared_ptr<const void> equal_or_own(const SharedBytes& own, bool padded) {
    const uint64_t sum = block_sum(own.text());
    std::lock_guard lock(mutex_);
    const auto [first, last] = known_.equal_range(sum);
    for (auto it = first; it != last; ++it) {
      if (it->second.bytes != own.bytes || (padded && !it->second.padded)) continue;
      std::shared_ptr<const void> other = it->second.data.lock();
      if (other != nullptr && std::memcmp(other.get(), own.data.get(), own.bytes) == 0)
        return other;
    }
    std::erase_if(known_, [](const auto& entry) { return entry.second.data.expired(); });
    known_.emplace(sum, Known{own.data, own.bytes, padded});
    return own.data;
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<uint64_t, Known> known_;  // by their sums
};

Pool& pool() {
  static Pool* const all = new Pool();  // programs may outlive static objects
  return *all;
}

thread_local int apart = 0;  // how many ConstantsApart live

}  // namespace

ConstantsApart::ConstantsApart() { ++apart; }
ConstantsApart::~ConstantsApart() { --apart; }

SharedBytes shared_constant(SharedBytes bytes) {
  if (apart > 0 || bytes.bytes < kLeastSharedBytes) return bytes;
  return {pool().equal_or_own(bytes, true), bytes.bytes};
}

Tensor shared_constant(Tensor tensor) {
  constexpr uintptr_t kAlignment = 64;
  if (apart > 0 || !tensor.defined() || tensor.bytes() < kLeastSharedBytes ||
      reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment != 0 ||
      lies_in_mapped_file(tensor.raw()))
    return tensor;
  const auto holder = std::make_shared<Tensor>(tensor);
  const std::shared_ptr<const void> kept =
      pool().equal_or_own({{holder, holder->raw()}, tensor.bytes()}, false);
  const std::shared_ptr<void> owner = std::const_pointer_cast<void>(kept);
  return Tensor::share(tensor.dtype(), tensor.shape(), owner, owner.get());
}

}  // namespace collage
