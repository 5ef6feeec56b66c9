// The kernels of the table in host_operators.cc, one file each. The table has checked the number of
// inputs, that the required ones exist and that their element types are allowed.
#pragma once

#include <collage/tensor.h>

#include <vector>

#include "base/result.h"
#include "frontend/onnx/node_attributes.h"

namespace collage::dynamic {

using Tensors = std::vector<Tensor>;
using HostKernel = Result<Tensors> (*)(const frontend::NodeAttributes& node, const Tensors& inputs);

Result<Tensors> run_compress(const frontend::NodeAttributes& node, const Tensors& inputs);
Result<Tensors> run_non_max_suppression(const frontend::NodeAttributes& node,
                                        const Tensors& inputs);
Result<Tensors> run_non_zero(const frontend::NodeAttributes& node, const Tensors& inputs);
Result<Tensors> run_unique(const frontend::NodeAttributes& node, const Tensors& inputs);
// com.microsoft: of a list, in order of appearance, without the places of first appearance.
Result<Tensors> run_microsoft_unique(const frontend::NodeAttributes& node, const Tensors& inputs);

}  // namespace collage::dynamic
