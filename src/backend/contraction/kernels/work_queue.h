// WorkQueue: pieces of work for threads, with work stealing. Each thread begins with a part of its
// own, front to back; a thread that is done takes pieces from the back of another's part. So a core
// that is shared, or far from its data, does fewer. A piece is the same whichever thread does it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace collage::contraction {

struct Range {
  int64_t begin, end;
};
/// Returns part `index` of `count` pieces in `of` parts, as equal as possible.
inline Range share(int64_t count, int64_t index, int64_t of) {
  return {count * index / of, count * (index + 1) / of};
}

class WorkQueue {
 public:
  explicit WorkQueue(int threads) : of_(static_cast<size_t>(threads)) {}

  /// Sets pieces 0 to `count`, before the threads begin. If a thread never begins, the others do
  /// its pieces.
  void reset(int64_t count) {
    for (int64_t t = 0; t < threads(); ++t)
      of_[static_cast<size_t>(t)].rest = packed(share(count, t, threads()));
  }

  /// Returns the next piece for that thread; none if all are taken.
  std::optional<int64_t> next(int thread) {
    for (int64_t other = 0; other < threads(); ++other) {
      std::atomic<uint64_t>& rest = of_[static_cast<size_t>((thread + other) % threads())].rest;
      uint64_t was = rest.load(std::memory_order_relaxed);
      while (first(was) < last(was)) {
        const bool own = other == 0;
        const int64_t piece = own ? first(was) : last(was) - 1;
        const uint64_t left = own ? packed({piece + 1, last(was)}) : packed({first(was), piece});
        if (rest.compare_exchange_weak(was, left, std::memory_order_relaxed)) return piece;
      }
    }
    return std::nullopt;
  }

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> rest{0};
  };
  static uint64_t packed(Range range) {
    return static_cast<uint64_t>(range.begin) << 32 | static_cast<uint64_t>(range.end);
  }
  static int64_t first(uint64_t rest) { return static_cast<int64_t>(rest >> 32); }
  static int64_t last(uint64_t rest) { return static_cast<int64_t>(rest & 0xffffffffu); }

  int64_t threads() const { return static_cast<int64_t>(of_.size()); }

  std::vector<Share> of_;
};

}  // namespace collage::contraction
