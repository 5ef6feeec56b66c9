#include "measure/timing_memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/integers.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

constexpr unsigned char kFillPattern = 0x3a;
constexpr size_t kMargin = 64;  // of pattern before a buffer, and at least as much behind it

bool is_pattern(const char* begin, const char* end) {
  return std::all_of(begin, end,
                     [](char byte) { return static_cast<unsigned char>(byte) == kFillPattern; });
}

size_t padded(size_t bytes) { return round_up(bytes, kMargin) + kMargin; }

}  // namespace

Result<void*> TimingMemory::zeros(size_t bytes, const std::string& name) {
  std::shared_ptr<void> memory = TRY(allocate_on_huge_pages(kMargin + padded(bytes)));
  char* data = static_cast<char*>(memory.get()) + kMargin;
  std::memset(data - kMargin, kFillPattern, kMargin);
  std::memset(data, 0, bytes);
  std::memset(data + bytes, kFillPattern, padded(bytes) - bytes);
  blocks_[data] = {std::move(memory), bytes, name};
  return static_cast<void*>(data);
}

Result<void*> TimingMemory::copy_of(const std::shared_ptr<GuardedBuffer>& buffer,
                                    const std::string& name) {
  void*& copy = copies_[buffer.get()];
  if (copy == nullptr) {
    copy = TRY(zeros(buffer->bytes(), name));
    std::memcpy(copy, buffer->data(), buffer->bytes());
  }
  return copy;
}

Status TimingMemory::check(const void* data) const {
  auto after = blocks_.upper_bound(data);
  COLLAGE_CHECK(after != blocks_.begin(), "not a buffer of this memory");
  const auto& [start, block] = *std::prev(after);
  const auto& [memory, bytes, name] = block;
  const char* begin = static_cast<const char*>(start);
  COLLAGE_CHECK(data == begin || data < begin + bytes, "not a buffer of this memory");
  if (!is_pattern(begin - kMargin, begin))
    return error(ErrorCode::kVerification, "wrote before {}", name);
  if (!is_pattern(begin + bytes, begin + padded(bytes)))
    return error(ErrorCode::kVerification, "wrote behind {}", name);
  return {};
}

}  // namespace collage
