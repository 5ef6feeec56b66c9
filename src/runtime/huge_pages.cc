#include "runtime/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/integers.h"
#include "base/machine_limits.h"

namespace collage {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRegion = 4 * kHugePage;
constexpr size_t kLarge = size_t{64} << 20;
constexpr size_t kRegionAlignment = 64;

// A mapping that begins at a huge page's boundary.
class MappedRegion {
 public:
  static Result<std::shared_ptr<MappedRegion>> create(size_t bytes) {
    auto region = std::make_shared<MappedRegion>();
    region->size_ = round_up(bytes, kHugePage);
    region->mapped_ = region->size_ + kHugePage;
    void* memory = ::mmap(nullptr, region->mapped_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return error(ErrorCode::kUnavailable, "out of memory: {} bytes: {}", bytes,
                   std::strerror(errno));
    region->mapping_ = memory;
    region->begin_ =
        reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(memory), kHugePage));
    ::madvise(region->begin_, region->size_, MADV_HUGEPAGE);  // a hint
    return region;
  }
  MappedRegion() = default;
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;
  ~MappedRegion() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
  }
  // Null when it is full.
  void* take(size_t bytes) {
    size_t offset = used_;
    if (bytes > size_ - offset) return nullptr;
    used_ += round_up(bytes, kRegionAlignment);
    used_ = std::min(used_, size_);
    return begin_ + offset;
  }

 private:
  void* mapping_ = nullptr;
  char* begin_ = nullptr;
  size_t mapped_ = 0, size_ = 0, used_ = 0;
};

std::mutex mutex;
std::weak_ptr<MappedRegion> current;  // where small blocks come from

}  // namespace

Result<std::shared_ptr<void>> allocate_on_huge_pages(size_t bytes) {
  bytes = std::max(bytes, kRegionAlignment);
  std::lock_guard lock(mutex);
  if (bytes > kRegion / 2) {
    // The system promises more than it has, and ends who uses it.
    if (const uint64_t left = bytes < kLarge ? bytes : memory_left(); bytes > left)
      return error(ErrorCode::kUnavailable, "out of memory: {} bytes, where {} are left", bytes,
                   left);
    std::shared_ptr<MappedRegion> own = TRY(MappedRegion::create(bytes));
    void* block = own->take(bytes);
    return std::shared_ptr<void>(std::move(own), block);
  }
  std::shared_ptr<MappedRegion> region = current.lock();
  void* block = region != nullptr ? region->take(bytes) : nullptr;
  if (block == nullptr) {
    region = TRY(MappedRegion::create(kRegion));
    block = region->take(bytes);
    current = region;
  }
  return std::shared_ptr<void>(std::move(region), block);
}

}  // namespace collage
