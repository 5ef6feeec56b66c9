// The operators of which oneDNN's kernels may give a number where the definition gives NaN, and so
// OpenVINO's, whose CPU plugin computes with oneDNN and with code of the same kind: a maximum by
// the processor's instruction is its second operand where the first is NaN.
#pragma once

#include <string_view>
#include <vector>

namespace collage {

// For BackendTraits::loses_nan.
std::vector<std::string_view> losing_nan_in_onednn();

}  // namespace collage
