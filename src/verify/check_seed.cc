#include "verify/check_seed.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>

namespace collage {

uint32_t check_seed() {
  static const uint32_t seed = [] {
    uint32_t given = 0;
    if (const char* text = std::getenv("COLLAGE_CHECK_SEED"); text != nullptr) {
      const char* end = text + std::strlen(text);
      if (std::from_chars(text, end, given).ptr == end && end != text) return given;
    }
    return static_cast<uint32_t>(std::random_device{}());
  }();
  return seed;
}

}  // namespace collage
