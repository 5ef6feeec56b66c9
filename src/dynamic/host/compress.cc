// The slices, or elements, that a list of booleans selects.
#include "dynamic/host/kernels.h"
#include "dynamic/host/slices.h"

namespace collage::dynamic {

Result<Tensors> run_compress(const frontend::NodeAttributes& node, const Tensors& inputs) {
  const Tensor& condition = inputs[1];
  const bool along_axis = node.has_attr("axis");
  const Tensor data = along_axis ? inputs[0] : flattened(inputs[0]);
  const int64_t axis =
      along_axis ? TRY(frontend::normal_axis(TRY(node.integer("axis")), data.rank())) : 0;
  const int64_t extent = data.shape()[static_cast<size_t>(axis)];
  if (condition.dtype() != DType::kBool || condition.rank() != 1)
    return bad_model("the condition is a {} of shape {}, not a list of bool",
                     dtype_name(condition.dtype()), shape_to_string(condition.shape()));
  // A shorter one selects nothing of the rest.
  if (condition.size() > extent)
    return bad_model("a condition of {} elements for {}", condition.size(), extent);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < condition.size(); ++i)
    if (condition.data<uint8_t>()[i] != 0) chosen.push_back(i);
  return Tensors{TRY(take_slices(data, axis, chosen))};
}

}  // namespace collage::dynamic
