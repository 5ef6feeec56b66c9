#include "dynamic/host/kernels.h"
#include "dynamic/host/slices.h"
#include "ops/counted/data_dependent.h"

namespace collage::dynamic {

namespace {

Tensor list(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

Result<Tensors> run_unique(const frontend::NodeAttributes& node, const Tensors& inputs) {
  const bool sorted = TRY(node.flag("sorted", true)), along_axis = node.has_attr("axis");
  const Tensor data = along_axis ? inputs[0] : flattened(inputs[0]);
  const int64_t axis =
      along_axis ? TRY(frontend::normal_axis(TRY(node.integer("axis")), data.rank())) : 0;
  const EqualSlices found = TRY(find_equal_slices(data, axis, sorted));
  return Tensors{TRY(take_slices(data, axis, found.first)), list(found.first), list(found.of),
                 list(found.counts)};
}

Result<Tensors> run_microsoft_unique(const frontend::NodeAttributes&, const Tensors& inputs) {
  if (inputs[0].rank() != 1)
    return bad_model("data of shape {}, not a list", shape_to_string(inputs[0].shape()));
  const EqualSlices found = TRY(find_equal_slices(inputs[0], 0, false));
  return Tensors{TRY(take_slices(inputs[0], 0, found.first)), list(found.of), list(found.counts)};
}

}  // namespace collage::dynamic
