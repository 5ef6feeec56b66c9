#include "kernels/reference/loaders.h"

#include "kernels/reference/convert.h"
#include "kernels/reference/interpreted_kernel.h"

namespace collage::reference {

void register_loaders() {
  register_function_loader();
  register_conversion_loader();
}

}  // namespace collage::reference
