// Hashes: SHA-256 (libcrypto) for keys that reach disk, a mixing step for hash tables in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case hex digits

// Hashes data that comes in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, size_t bytes);
  std::string hex();  // ends the computation

 private:
  void* context_;
};

inline size_t hash_combine(size_t seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15u + (seed << 12) + (seed >> 4);
  return seed * 0xff51afd7ed558ccdu;
}

}  // namespace collage
