// Converts between encodings on the CPU: any layout to any other, and casts between float32,
// float64, float16 and bfloat16.
#pragma once

#include <collage/tensor.h>

#include <memory>

#include "ir/type.h"
#include "runtime/encoding.h"
#include "runtime/kernel.h"

namespace collage {

// Padding elements of a blocked target layout are written as zero.
Result<std::unique_ptr<Kernel>> make_conversion_kernel(const TensorType& type, const Encoding& from,
                                                       const Encoding& to);

void register_conversion_loader();

}  // namespace collage
