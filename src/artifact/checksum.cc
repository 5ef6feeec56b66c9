#include "artifact/checksum.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "base/integers.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kChunksOfThread = 4;  // for fewer a thread is not worth its start
constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t);

// One to one for a given word: a changed word changes the sum, whatever else is added to it later.
uint64_t mixed(uint64_t sum, uint64_t word) {
  const uint64_t product = (sum ^ word) * 0x9e3779b97f4a7c15u;
  return product ^ (product >> 32);
}

void add_stripe(uint64_t* sums, const char* at) {
  uint64_t words[kLanes];
  std::memcpy(words, at, kStripe);
  for (size_t i = 0; i < kLanes; ++i) sums[i] = mixed(sums[i], words[i]);
}

// Several sums side by side, since each waits for its last multiplication.
uint64_t sum_of(std::string_view chunk) {
  uint64_t sums[kLanes];
  for (size_t i = 0; i < kLanes; ++i) sums[i] = i + 1;
  size_t at = 0;
  for (; at + kStripe <= chunk.size(); at += kStripe) add_stripe(sums, chunk.data() + at);
  if (at < chunk.size()) {
    char rest[kStripe] = {};
    std::memcpy(rest, chunk.data() + at, chunk.size() - at);
    add_stripe(sums, rest);
  }
  uint64_t total = chunk.size();
  for (uint64_t sum : sums) total = mixed(total, sum);
  return total;
}

}  // namespace

std::string checksum_of(std::string_view bytes, int threads) {
  const size_t chunks = ceil_div(bytes.size(), kChunk);
  std::vector<uint64_t> sums(chunks);
  std::atomic<size_t> next{0};
  const auto work = [&](int) {
    for (size_t i = next++; i < chunks; i = next++)
      sums[i] = sum_of(bytes.substr(i * kChunk, kChunk));
  };
  const size_t useful =
      std::min(static_cast<size_t>(std::max(threads, 1)), chunks / kChunksOfThread);
  if (useful > 1) {
    run_on_new_threads(static_cast<int>(useful), work);
  } else {
    work(0);
  }
  return sha256_hex({reinterpret_cast<const char*>(sums.data()), chunks * sizeof(uint64_t)});
}

}  // namespace collage
