#include "backend/reference/kernels/loaders.h"

#include "backend/reference/kernels/control_kernel.h"
#include "backend/reference/kernels/convert.h"
#include "backend/reference/kernels/interpreted_kernel.h"

namespace collage::reference {

void register_loaders() {
  register_function_loader();
  register_conversion_loader();
  register_control_loader();
}

}  // namespace collage::reference
