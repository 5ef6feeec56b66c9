// Data in another encoding, by the conversions of the host's backend, which are right whatever they
// cost: what kernels are given and judged by.
#pragma once

#include "backend/backend.h"

namespace collage {

// The bytes of a tensor of that (logical) type in the encoding `to`, as a tensor of bytes. `data`
// is in the encoding `from`. Whatever devices they name, both lie in the host's memory.
Result<Tensor> convert_on_host(const void* data, const TensorType& type, const Encoding& from,
                               const Encoding& to, const CompileOptions& options);

}  // namespace collage
