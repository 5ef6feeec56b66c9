#include "base/resident_memory.h"

#include <fstream>
#include <string>

namespace collage {

void reset_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    if (key == "VmHWM:") {
      size_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes << 10;
    }
    std::string rest;
    std::getline(status, rest);
  }
  return 0;
}

}  // namespace collage
