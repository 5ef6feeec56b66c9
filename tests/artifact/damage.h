// Damaged files: one change each, of a kind that the number chooses.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "artifact/manifest.h"

namespace collage::testing {

// A copy of the file with a changed byte, a changed run of bytes, an end that is missing or too
// long, or two entries in each other's place.
inline std::string damaged(const std::string& file, const Manifest& manifest, uint32_t number) {
  std::mt19937 random(number);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
  std::string copy = file;
  switch (number % 6) {
    case 0:
    case 1:
      copy[below(copy.size())] ^= static_cast<char>(1 << below(8));
      break;
    case 2: {
      const size_t begin = below(copy.size()), length = 1 + below(64);
      for (size_t i = begin; i < copy.size() && i < begin + length; ++i)
        copy[i] = static_cast<char>(~copy[i]);
      break;
    }
    case 3:
      copy.resize(below(copy.size()));
      break;
    case 4:
      copy.append(1 + below(5000), static_cast<char>(below(256)));
      break;
    default: {
      const ManifestEntry& a = manifest.entries[below(manifest.entries.size())];
      const ManifestEntry& b = manifest.entries[below(manifest.entries.size())];
      const size_t bytes = std::min(a.bytes, b.bytes);
      for (size_t i = 0; i < bytes; ++i) std::swap(copy[a.offset + i], copy[b.offset + i]);
    }
  }
  return copy;
}

}  // namespace collage::testing
