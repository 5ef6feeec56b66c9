#include "backend/onednn/labels.h"

#include <algorithm>

#include "backend/onednn/kernels/library.h"
#include "backend/onednn/layouts.h"
#include "tensor_program/external.h"

namespace collage::onednn {
namespace {

Result<TensorType> product_type(std::span<const TensorType> inputs) {
  if (inputs.size() != 2 && inputs.size() != 3)
    return unsupported("onednn.matmul of {} arrays", inputs.size());
  for (const TensorType& input : inputs) {
    if (input.dtype != DType::kFloat32 || num_elements(input.shape) == 0)
      return unsupported("onednn.matmul of a {}", input.to_string());
  }
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  const size_t rank = a.size();
  if (rank < 2 || rank > 3 || b.size() != rank || a[rank - 1] != b[rank - 2] ||
      (rank == 3 && a[0] != b[0]))
    return unsupported("onednn.matmul of shapes {} and {}", shape_to_string(a), shape_to_string(b));
  Shape result = a;
  result.back() = b.back();
  if (inputs.size() == 3 && inputs[2].shape != result && inputs[2].shape != Shape{result.back()})
    return unsupported("onednn.matmul adds no array of shape {}", shape_to_string(inputs[2].shape));
  return TensorType{result, DType::kFloat32};
}

Shape shape_of(const DLTensor& tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }

/// Primitives are cached by oneDNN itself.
Status external_product(std::span<const DLTensor> inputs, const DLTensor& destination) {
  return guarded("onednn.matmul", [&]() -> Status {
    const Desc a = plain_desc(shape_of(inputs[0])), b = plain_desc(shape_of(inputs[1])),
               c = plain_desc(shape_of(destination));
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, dnnl::memory(a, engine(), inputs[0].data)},
        {DNNL_ARG_WEIGHTS, dnnl::memory(b, engine(), inputs[1].data)},
        {DNNL_ARG_DST, dnnl::memory(c, engine(), destination.data)}};
    dnnl::post_ops post_ops;
    if (inputs.size() == 3) {
      Shape added = shape_of(inputs[2]);
      added.insert(added.begin(), static_cast<size_t>(destination.ndim) - added.size(), 1);
      const Desc desc = plain_desc(added);
      post_ops.append_binary(dnnl::algorithm::binary_add, desc);
      args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                   dnnl::memory(desc, engine(), inputs[2].data));
    }
    dnnl::primitive_attr attr;
    attr.set_post_ops(post_ops);
    dnnl::matmul(dnnl::matmul::primitive_desc(engine(), a, b, c, attr)).execute(stream(), args);
    return {};
  });
}

}  // namespace

void register_labels() {
  tensor_program::register_external("onednn.matmul", product_type, external_product);
}

}  // namespace collage::onednn
