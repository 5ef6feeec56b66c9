// Names of instruction sets that compiled kernels may use: this processor's.
#pragma once

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

}  // namespace collage
