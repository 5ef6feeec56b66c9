// Weights in the order a template reads them, in the memory its kernel keeps them in: on huge
// pages, written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "runtime/huge_pages.h"

namespace collage::native {

/// Elements are zero until they are written. T is float, or uint16_t for the bits of bfloat16.
template <typename T>
class PackedWeights {
 public:
  /// Throws std::bad_alloc where there is no memory.
  explicit PackedWeights(int64_t count) : count_(static_cast<size_t>(count)) {
    // Vector loads may read up to a line beyond the end.
    Result<std::shared_ptr<void>> memory = allocate_on_huge_pages(bytes() + kSlack);
    if (!memory) throw std::bad_alloc();
    memory_ = std::move(*memory);
  }

  T& operator[](int64_t i) { return data()[i]; }
  T* data() { return static_cast<T*>(memory_.get()); }
  size_t bytes() const { return count_ * sizeof(T); }
  const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  static constexpr size_t kSlack = 64;
  size_t count_;
  std::shared_ptr<void> memory_;
};

}  // namespace collage::native
