#include "backend/contraction/kernels/parts.h"

namespace collage::contraction {

const char* Parts::name() const {
  switch (products()) {
    case 1:
      return "bf16";
    case 2:
      return "bf16x2";
    case 3:
      return "bf16x3";
    default:
      return "bf16x6";
  }
}

}  // namespace collage::contraction
