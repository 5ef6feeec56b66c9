#include "base/processor.h"

#include <cpuid.h>

#include <algorithm>
#include <fstream>

#include "base/printable.h"

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

std::vector<std::string> processor_features() {
  std::vector<std::string> found;
  const auto add = [&](const char* name, bool there) {
    if (there) found.emplace_back(name);
  };
  __builtin_cpu_init();
  add("sse4.2", __builtin_cpu_supports("sse4.2") != 0);
  add("avx", __builtin_cpu_supports("avx") != 0);
  add("avx2", __builtin_cpu_supports("avx2") != 0);
  add("fma", __builtin_cpu_supports("fma") != 0);
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  add("avx512f", wide);
  add("avx512cd", __builtin_cpu_supports("avx512cd") != 0);
  add("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
  add("avx512dq", __builtin_cpu_supports("avx512dq") != 0);
  add("avx512vl", __builtin_cpu_supports("avx512vl") != 0);
  add("avx512vnni", __builtin_cpu_supports("avx512vnni") != 0);
  add("avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0);
  add("avx512bf16", __builtin_cpu_supports("avx512bf16") != 0);
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (wide && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    add("avx512fp16", (d >> 23 & 1) != 0);
    add("amx_bf16", (d >> 22 & 1) != 0);
    add("amx_tile", (d >> 24 & 1) != 0);
    add("amx_int8", (d >> 25 & 1) != 0);
  }
  if (wide && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) add("avx_vnni", (a >> 4 & 1) != 0);
  return found;
}

std::string lacking_features(const std::vector<std::string>& wanted) {
  const std::vector<std::string> here = processor_features();
  std::string missing;
  for (const std::string& feature : wanted)
    if (std::find(here.begin(), here.end(), feature) == here.end())
      missing += (missing.empty() ? "" : ", ") + printable(feature);
  return missing;
}

std::vector<std::string> code_features(std::vector<std::string> features) {
  std::erase_if(features, [](const std::string& name) { return name.starts_with("amx"); });
  return features;
}

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
