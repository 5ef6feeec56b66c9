#include "base/cache_sizes.h"

#include <fstream>
#include <string>

namespace collage {

namespace {

// sysconf counts the third level of all the processor's groups of cores together; the files here
// tell that of ours.
size_t size_of_level(int level, size_t fallback) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int found = 0;
    if (!(std::ifstream(folder + "level") >> found)) break;
    size_t size = 0;
    char unit = 0;
    if (found != level || !(std::ifstream(folder + "size") >> size >> unit)) continue;
    std::string type;
    std::ifstream(folder + "type") >> type;
    if (type == "Instruction" || size == 0) continue;
    return size << (unit == 'M' ? 20 : 10);
  }
  return fallback;
}

}  // namespace

size_t first_cache_bytes() {
  static const size_t bytes = size_of_level(1, 32 << 10);
  return bytes;
}

size_t private_cache_bytes() {
  static const size_t bytes = size_of_level(2, 1 << 20);
  return bytes;
}

size_t shared_cache_bytes() {
  static const size_t bytes = size_of_level(3, 32 << 20);
  return bytes;
}

}  // namespace collage
