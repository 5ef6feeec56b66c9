// In place of src/backend/contraction/kernels/processor.cc: the software model is always there.
#include "backend/contraction/kernels/processor.h"

namespace collage::contraction {

Status matrix_unit() { return {}; }

}  // namespace collage::contraction
