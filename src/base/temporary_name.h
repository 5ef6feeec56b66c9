// A name beside `path` for a file that is written first and then renamed to it: no other thread and
// no other process is given the same.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace collage {

inline std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<uint64_t> counter{0};
  return path.string() + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(counter++);
}

}  // namespace collage
