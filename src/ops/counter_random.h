// A counter-based generator: number `index` of a stream depends on the stream's key, on the number
// of the run and on the index alone, so any part of a stream can be computed in any order, on any
// number of threads. The bits are splitmix64's finaliser of these, each mixed in turn; the first
// run, of number 0, is not mixed in.
#pragma once

#include <cstdint>

namespace collage {

constexpr uint64_t mix_bits(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomStream {
 public:
  explicit constexpr RandomStream(uint64_t key, uint64_t run = 0)
      : base_(run == 0 ? mix_bits(key) : mix_bits(mix_bits(key) + run)) {}

  constexpr uint64_t bits(uint64_t index) const { return mix_bits(base_ + index); }
  // In [0, 1), a multiple of 2^-53.
  constexpr double uniform(uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  // The same, rounded down to a multiple of 2^-24, so that it is a float below 1.
  constexpr float uniform_float(uint64_t index) const {
    return static_cast<float>(bits(index) >> 40) * 0x1p-24f;
  }

 private:
  uint64_t base_;
};

}  // namespace collage
