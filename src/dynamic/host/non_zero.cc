#include "frontend/onnx/staged/non_zero.h"

#include "dynamic/host/kernels.h"

namespace collage::dynamic {

Result<Tensors> run_non_zero(const frontend::NodeAttributes&, const Tensors& inputs) {
  return Tensors{TRY(frontend::find_non_zero(inputs[0]))};
}

}  // namespace collage::dynamic
