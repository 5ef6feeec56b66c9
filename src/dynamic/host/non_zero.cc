#include "dynamic/host/kernels.h"
#include "ops/counted/data_dependent.h"

namespace collage::dynamic {

Result<Tensors> run_non_zero(const frontend::NodeAttributes&, const Tensors& inputs) {
  return Tensors{TRY(find_non_zero(inputs[0]))};
}

}  // namespace collage::dynamic
