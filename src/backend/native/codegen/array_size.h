// How large an array may be that code of Halide's reads or writes: it computes offsets in 32 bits,
// in bytes where it gathers.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "ir/type.h"

namespace collage::native {

constexpr int64_t kMostBytes = INT32_MAX;

/// kUnsupported where the array, as it lies in memory, is larger.
Status check_array_size(std::string_view name, const TensorType& type);

}  // namespace collage::native
