// Operators for which kernels of oneDNN may give a number where the definition gives NaN, and so
// OpenVINO's, whose CPU plugin computes with oneDNN and similar code: the processor's maximum
// instruction returns its second operand if the first is NaN.
#pragma once

#include <string_view>
#include <vector>

namespace collage {

// Returns the list for BackendTraits::loses_nan.
std::vector<std::string_view> losing_nan_in_onednn();

}  // namespace collage
