#include "base/machine_limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// A file system of groups: of version 1, with the controllers that it is for, or of version 2.
struct GroupMount {
  bool unified = false;  // version 2
  std::vector<std::string> controllers;
  std::string group;  // the group that the mount shows as its root
  fs::path folder;    // where
};

// "\040" and the like stand for characters that separate fields.
std::string unescaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string digits = text[i] == '\\' ? text.substr(i + 1, 3) : "";
    if (digits.size() == 3 && digits.find_first_not_of("01234567") == std::string::npos) {
      result += static_cast<char>(std::stoi(digits, nullptr, 8));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// "36 35 0:29 /group /sys/fs/cgroup rw - cgroup2 cgroup rw"
std::vector<GroupMount> group_mounts(const fs::path& root) {
  std::vector<GroupMount> mounts;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const std::string& type = dash[1];
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup2", split(dash[3], ','), unescaped(fields[3]),
                      root / fs::path(unescaped(fields[4])).relative_path()});
  }
  return mounts;
}

// The process's group in the hierarchy of a mount: "4:cpu,cpuacct:/group", of version 2
// "0::/group".
std::optional<std::string> own_group(const fs::path& root, const GroupMount& mount,
                                     const std::string& controller) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> controllers = split(names, ',');
    const bool is_it = mount.unified ? names.empty()
                                     : std::find(controllers.begin(), controllers.end(),
                                                 controller) != controllers.end();
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

// From the own group's folder up to the mount's. A group that the mount does not show (the mount is
// of another namespace) is as if the process was in the mount's own.
std::vector<fs::path> folders_up(const GroupMount& mount, const std::string& group) {
  const fs::path below = fs::path(group).lexically_relative(mount.group);
  std::vector<fs::path> folders = {mount.folder};
  if (below.empty() || *below.begin() == "..") return folders;
  for (const fs::path& part : below)
    if (part != ".") folders.push_back(folders.back() / part);
  return folders;
}

// A file's numbers; "max" is none.
std::vector<std::optional<double>> numbers_in(const fs::path& file) {
  std::vector<std::optional<double>> numbers;
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    numbers.push_back(end == word.c_str() + word.size() ? std::optional(value) : std::nullopt);
  }
  return numbers;
}

std::optional<double> quotient(const std::optional<double>& quota,
                               const std::optional<double>& period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> cores_of(const GroupMount& mount, const fs::path& folder) {
  if (mount.unified) {
    const auto numbers = numbers_in(folder / "cpu.max");
    return numbers.size() == 2 ? quotient(numbers[0], numbers[1]) : std::nullopt;
  }
  const auto quota = numbers_in(folder / "cpu.cfs_quota_us"),
             period = numbers_in(folder / "cpu.cfs_period_us");
  return quota.size() == 1 && period.size() == 1 ? quotient(quota[0], period[0]) : std::nullopt;
}

std::optional<double> first_of(const fs::path& file) {
  const auto numbers = numbers_in(file);
  return numbers.size() == 1 && numbers[0] >= 0 ? numbers[0] : std::nullopt;
}

std::optional<double> bytes_of(const GroupMount& mount, const fs::path& folder) {
  return first_of(folder / (mount.unified ? "memory.max" : "memory.limit_in_bytes"));
}

// The sum of named numbers: "name 123", perhaps with more behind it, a line each.
double sum_in(const fs::path& file, std::initializer_list<std::string_view> names) {
  double sum = 0;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value && std::find(names.begin(), names.end(), name) != names.end())
      sum += value;
  }
  return sum;
}

std::optional<double> bytes_left_of(const GroupMount& mount, const fs::path& folder) {
  const std::optional<double> limit = bytes_of(mount, folder),
                              used = first_of(folder / (mount.unified ? "memory.current"
                                                                      : "memory.usage_in_bytes"));
  if (!limit || !used) return std::nullopt;
  const fs::path stat = folder / "memory.stat";
  const double files = mount.unified ? sum_in(stat, {"inactive_file", "active_file"})
                                     : sum_in(stat, {"total_inactive_file", "total_active_file"});
  return std::max(0.0, *limit - std::max(0.0, *used - files));
}

// The least of what `read` finds in the groups that limit `controller`.
template <typename Read>
std::optional<double> least(const fs::path& root, const std::string& controller, Read&& read) {
  std::optional<double> least;
  for (const GroupMount& mount : group_mounts(root)) {
    if (!mount.unified && std::find(mount.controllers.begin(), mount.controllers.end(),
                                    controller) == mount.controllers.end())
      continue;
    const std::optional<std::string> group = own_group(root, mount, controller);
    if (!group) continue;
    for (const fs::path& folder : folders_up(mount, *group))
      if (const std::optional<double> value = read(mount, folder);
          value && (!least || *value < *least))
        least = value;
  }
  return least;
}

// What groups allow a process rarely changes while it runs; reading it takes as long as a kernel.
const GroupLimits& own_group_limits() {
  static const GroupLimits limits = group_limits();
  return limits;
}

}  // namespace

GroupLimits group_limits(const fs::path& root) {
  constexpr double kMostBytes = 1e18;  // "no limit" of version 1 is beyond it
  GroupLimits limits;
  limits.cores = least(root, "cpu", cores_of);
  if (const std::optional<double> bytes = least(root, "memory", bytes_of);
      bytes && *bytes < kMostBytes)
    limits.bytes = static_cast<uint64_t>(*bytes);
  return limits;
}

uint64_t memory_left(const fs::path& root) {
  constexpr double kKilobyte = 1024, kMost = 1e18;
  double left = kKilobyte * sum_in(root / "proc/meminfo", {"MemAvailable:", "SwapFree:"});
  if (left == 0) left = kMost;  // the system does not say
  return static_cast<uint64_t>(
      std::min(left, least(root, "memory", bytes_left_of).value_or(kMost)));
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double granted = own_group_limits().cores.value_or(cores);
  return std::max(1, static_cast<int>(std::lround(std::min<double>(cores, granted))));
}

uint64_t available_memory() {
  constexpr uint64_t kLeast = uint64_t{1} << 28;  // where the system does not say
  const auto pages = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)),
             page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages * page) : kLeast;
  bytes = std::min(bytes, own_group_limits().bytes.value_or(bytes));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  return bytes;
}

}  // namespace collage
