// Names of this processor's instruction sets that compiled kernels may use.
#pragma once

#include <string>
#include <vector>

namespace collage {

std::vector<std::string> processor_features();  // "avx2", "avx512f" …, in a fixed order
// The same without the matrix unit, which compilers do not use by themselves; kernels that use it
// check for it.
std::vector<std::string> code_features();

}  // namespace collage
