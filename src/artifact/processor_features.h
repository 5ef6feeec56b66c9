// What of this processor's instruction sets compiled kernels may use, by name.
#pragma once

#include <string>
#include <vector>

namespace collage {

std::vector<std::string> processor_features();  // "avx2", "avx512f" …, in a fixed order
// Without the matrix unit, which no compiler uses of its own accord: kernels that use it ask for
// it.
std::vector<std::string> code_features();

}  // namespace collage
