#include "base/resident_memory.h"

#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/mapped_file.h"

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

size_t anonymous_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "Anonymous: %zu kB", &kilobytes) == 1) return kilobytes << 10;
  }
  return 0;
}

size_t resident_bytes_of(const void* begin, size_t bytes) {
  const auto low = reinterpret_cast<uintptr_t>(begin), high = low + bytes;
  std::ifstream mappings("/proc/self/smaps");
  size_t found = 0;
  bool inside = false;
  for (std::string line; std::getline(mappings, line);) {
    uintptr_t from = 0, to = 0;
    size_t kilobytes = 0;
    // "7f0c…-7f0d… r--p …" begins a mapping, and lines such as "Rss:   120 kB" tell of it.
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      inside = from >= low && from < high;
    } else if (inside && std::sscanf(line.c_str(), "Rss: %zu kB", &kilobytes) == 1) {
      found += kilobytes << 10;
    }
  }
  return found;
}

void return_unused_memory() {
  forget_mapped_pages();
  ::malloc_trim(0);
}

}  // namespace collage
