// What this process may use of the machine: of its cores and of its memory. The least of what the
// machine has, the affinity mask, resource limits (ulimit -v), and the control groups that the
// process is in, its own and those around it, of version 1, 2, or both: a container, a service, a
// job or a pod may limit any of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace collage {

// What control groups allow; none: no limit.
struct GroupLimits {
  std::optional<double> cores;    // processor time by time
  std::optional<uint64_t> bytes;  // of memory
};

// Of the groups that this process is in, from its own up to the outermost that it can see. `root`:
// where proc and the groups' file systems are found, for tests.
GroupLimits group_limits(const std::filesystem::path& root = "/");

// Memory that this process may still take: what neither the machine nor one of its groups has given
// away, but for pages of files. `root` as above.
uint64_t memory_left(const std::filesystem::path& root = "/");

// Whole cores, at least one.
int available_cores();
uint64_t available_memory();  // bytes

}  // namespace collage
