#include "measure/eviction.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/integers.h"
#include "base/processor.h"
#include "runtime/huge_pages.h"

namespace collage {

namespace {

constexpr size_t kLargeSharedCache = 128 << 20;
constexpr size_t kPassings = 8;  // until the same bytes pass again
constexpr size_t kStep = 512;    // of streaming: eight lines

// What an Evictor reads, a buffer for each thread. They live as long as the process: filling them
// again for every task takes longer than the rounds of many a kernel.
class EvictionBuffers {
 public:
  // Buffers of `bytes` at least, filled.
  Status reserve(int threads, size_t bytes) {
    if (buffers_.size() >= static_cast<size_t>(threads) && bytes_ >= bytes) return {};
    buffers_.clear();
    bytes_ = 0;
    for (int t = 0; t < threads; ++t) {
      buffers_.push_back(TRY(allocate_on_huge_pages(bytes)));
      std::memset(buffers_.back().get(), 1, bytes);
    }
    bytes_ = bytes;
    return {};
  }
  const int64_t* of_thread(int thread) const {
    return static_cast<const int64_t*>(buffers_[thread].get());
  }

 private:
  size_t bytes_ = 0;
  std::vector<std::shared_ptr<void>> buffers_;
};

// Of the process: in a worker, or of the thread whose turn_to_measure it is.
EvictionBuffers& buffers() {
  static EvictionBuffers buffers;
  return buffers;
}

bool is_large(const TimedBuffer& buffer) { return buffer.bytes > 4 << 20; }

}  // namespace

size_t own_caches() { return std::clamp<size_t>(4 * private_cache_bytes(), 2 << 20, 8 << 20); }

Evictor::Evictor(CacheState state, size_t own, size_t passing, int threads, Everywhere everywhere)
    : private_(own),
      shared_(std::clamp<size_t>(4 * shared_cache_bytes(), 128 << 20, 768 << 20)),
      stays_(shared_cache_bytes() >= kLargeSharedCache ? 1536 << 10 : 0),
      state_(state),
      passing_(passing),
      threads_(threads),
      everywhere_(std::move(everywhere)) {}

Status Evictor::begin_round(const std::vector<TimedKernel>& kernels,
                            const std::vector<size_t>& turns) {
  if (state_ == CacheState::kWarm) return {};
  size_t streaming = 0, own = 0;
  for (size_t k : turns) {
    if (!streams(kernels[k])) continue;
    ++streaming;
    own += from_memory(kernels[k]);
  }
  turn_ = 0;
  if (state_ == CacheState::kCold) {
    ring_ = round_up(kPassings * passing_ / threads_, kStep);
    turn_ = round_up(passing_ / std::max<size_t>(1, streaming) / threads_, kStep);
  } else if (streaming > 0) {
    ring_ = round_up(shared_ / threads_, kStep);
    if (shared_ > own) turn_ = round_up((shared_ - own) / streaming / threads_, kStep);
  }
  return buffers().reserve(threads_, private_ + ring_);
}

CoreState Evictor::prepare(const TimedKernel& timed) {
  const bool streaming = streams(timed), warm = state_ == CacheState::kWarm;
  CoreProbe probe(threads_);
  everywhere_([&](int thread) {
    if (streaming) {
      const size_t first = std::min(turn_, ring_ - next_);
      stream(thread, private_ + next_, first);
      stream(thread, private_, turn_ - first);
      // The rest was in use a few kernels ago.
      for (const TimedBuffer& output : timed.outputs)
        if (!is_large(output)) rewrite(output, thread);
      if (!is_large(timed.workspace)) rewrite(timed.workspace, thread);
    }
    if (!warm) stream(thread, 0, private_);
    if (!warm)
      for (const TimedBuffer& input : timed.inputs) rewrite(input, thread);
    probe.look(thread);
  });
  if (streaming) next_ = (next_ + turn_) % ring_;
  return probe.state();
}

bool Evictor::streams(const TimedKernel& timed) const {
  if (state_ == CacheState::kCold) return passing_ > 0 && timed.kernel->constant_bytes() > 0;
  return state_ == CacheState::kStreaming && from_memory(timed) > stays_;
}

size_t Evictor::from_memory(const TimedKernel& timed) {
  size_t bytes = timed.kernel->constant_bytes();
  for (const TimedBuffer& output : timed.outputs) bytes += is_large(output) ? output.bytes : 0;
  return bytes + (is_large(timed.workspace) ? timed.workspace.bytes : 0);
}

void Evictor::stream(int thread, size_t offset, size_t bytes) {
  const int64_t* values = buffers().of_thread(thread) + offset / sizeof(int64_t);
  uint64_t sums[8] = {};  // of whatever the buffer holds: they may overflow
  for (size_t i = 0; i < bytes / sizeof(int64_t); i += kStep / sizeof(int64_t))
    for (size_t j = 0; j < 8; ++j) sums[j] += static_cast<uint64_t>(values[i + 8 * j]);
  for (uint64_t sum : sums) sink_.fetch_add(sum, std::memory_order_relaxed);
}

void Evictor::rewrite(const TimedBuffer& buffer, int thread) const {
  constexpr size_t kLine = 64, kPage = 4096;
  auto* values = static_cast<volatile char*>(buffer.data);
  for (size_t page = kPage * thread; page < buffer.bytes; page += kPage * threads_)
    for (size_t b = page; b < std::min(page + kPage, buffer.bytes); b += kLine)
      values[b] = values[b];
}

}  // namespace collage
