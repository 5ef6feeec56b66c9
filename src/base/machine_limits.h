// The cores and the memory that this process may use: the least of what the machine has, the
// affinity mask, resource limits (ulimit -v), and the control groups of the process, its own and
// those around it, of version 1, 2, or both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace collage {

// Limits of control groups; none: no limit.
struct GroupLimits {
  std::optional<double> cores;    // processor time by time
  std::optional<uint64_t> bytes;  // of memory
};

// Reads the groups of this process, from its own up to the outermost visible one. `root`: the
// folder that holds proc and the groups' file systems, for tests.
GroupLimits group_limits(const std::filesystem::path& root = "/");

// Bytes that this process may still take: memory that is free in the machine and in all its groups,
// pages of files included. `root` as above.
uint64_t memory_left(const std::filesystem::path& root = "/");

// Whole cores, at least one.
int available_cores();
uint64_t available_memory();  // bytes

}  // namespace collage
