// This processor: its instruction sets that compiled kernels may use, and the sizes of its caches,
// as the operating system states them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace collage {

std::vector<std::string> processor_features();  // "avx2", "avx512f" …, in a fixed order
// These without the matrix unit, which compilers do not use by themselves; kernels that use it
// check for it.
std::vector<std::string> code_features(std::vector<std::string> features = processor_features());
inline constexpr const char* kArchitecture =
#if defined(__x86_64__)
    "x86_64";
#else
    "another";
#endif
// Those that this processor lacks, in words: "amx_tile, avx512f"; empty where code for all of them
// runs here.
std::string lacking_features(const std::vector<std::string>& wanted);

// Bytes of a core's first-level data cache; 32 KB if the system does not state it.
size_t first_cache_bytes();
// Bytes of a core's own second-level cache; 1 MB if the system does not state it.
size_t private_cache_bytes();
// Bytes of the third-level cache that several cores share; 32 MB if it is not stated.
size_t shared_cache_bytes();

}  // namespace collage
