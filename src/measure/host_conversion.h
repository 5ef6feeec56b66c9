// Converts data to another encoding by the host backend's conversions, which are correct and may be
// slow: for inputs and references of kernels.
#pragma once

#include "backend/backend.h"

namespace collage {

// Returns the bytes of a tensor of that (logical) type in the encoding `to`, as a tensor of bytes.
// `data` is in the encoding `from`. Both lie in the host's memory, whatever devices they name.
Result<Tensor> convert_on_host(const void* data, const TensorType& type, const Encoding& from,
                               const Encoding& to, const CompileOptions& options);

}  // namespace collage
