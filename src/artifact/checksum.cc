#include "artifact/checksum.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/block_sum.h"
#include "base/hash.h"
#include "base/integers.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kChunksOfThread = 4;  // for fewer a thread is not worth its start

}  // namespace

std::string checksum_of(std::string_view bytes, int threads) {
  const size_t chunks = ceil_div(bytes.size(), kChunk);
  std::vector<uint64_t> sums(chunks);
  std::atomic<size_t> next{0};
  const auto work = [&](int) {
    for (size_t i = next++; i < chunks; i = next++)
      sums[i] = block_sum(bytes.substr(i * kChunk, kChunk));
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
