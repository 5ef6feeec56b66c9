#include "kernels/vnni/loaders.h"

#include "kernels/contraction/processor.h"
#include "kernels/contraction/saved_contraction.h"
#include "kernels/vnni/dot_products.h"

namespace collage::vnni {
namespace {

Result<std::shared_ptr<Kernel>> load_contraction(const SavedKernel& saved, int threads) {
  TRY(contraction::dot_products());
  return contraction::load_contraction_kernel(saved, dot_micro_kernel(), threads);
}

}  // namespace

void register_loaders() {
  register_kernel_loader({dot_micro_kernel().loader(), "1", load_contraction});
}

}  // namespace collage::vnni
