#include "backend/amx/kernels/loaders.h"

#include "backend/amx/kernels/attention_kernel.h"
#include "backend/amx/kernels/saved_attention.h"
#include "backend/amx/kernels/tiles.h"
#include "backend/contraction/kernels/processor.h"
#include "backend/contraction/kernels/saved_contraction.h"

namespace collage::amx {
namespace {

Result<std::shared_ptr<Kernel>> load_contraction(const SavedKernel& saved, int threads) {
  TRY(contraction::matrix_unit());  // asks for it
  return contraction::load_contraction_kernel(saved, tile_micro_kernel(), threads);
}

Result<std::shared_ptr<Kernel>> load_attention(const SavedKernel& saved, int threads) {
  TRY(contraction::matrix_unit());
  SavedAttention read = TRY(read_saved_attention(saved));
  return std::shared_ptr<Kernel>(
      TRY(make_attention_kernel(std::move(read.attention), read.parts, threads)));
}

}  // namespace

void register_loaders() {
  register_kernel_loader({tile_micro_kernel().loader(), "2", load_contraction});
  register_kernel_loader({kAttentionLoader, "1", load_attention});
}

}  // namespace collage::amx
