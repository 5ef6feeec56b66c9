// DLPack's name for an element type.
#pragma once

#include <collage/tensor.h>
#include <dlpack/dlpack.h>

namespace collage {

DLDataType dl_data_type(DType dtype);

}  // namespace collage
