#include "base/block_sum.h"

#include <cstddef>
#include <cstring>

namespace collage {

namespace {

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

}  // namespace

// Several sums side by side, since each waits for its last multiplication.
uint64_t block_sum(std::string_view bytes) {
  uint64_t sums[kLanes];
  for (size_t i = 0; i < kLanes; ++i) sums[i] = i + 1;
  size_t at = 0;
  for (; at + kStripe <= bytes.size(); at += kStripe) add_stripe(sums, bytes.data() + at);
  if (at < bytes.size()) {
    char rest[kStripe] = {};
    std::memcpy(rest, bytes.data() + at, bytes.size() - at);
    add_stripe(sums, rest);
  }
  uint64_t total = bytes.size();
  for (uint64_t sum : sums) total = mixed(total, sum);
  return total;
}

}  // namespace collage
