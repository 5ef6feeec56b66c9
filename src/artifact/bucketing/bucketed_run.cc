#include "artifact/bucketing/bucketed_run.h"

#include <algorithm>

#include "runtime/memory_overlap.h"

namespace collage {

namespace {

Status check_inputs(const std::vector<DynamicTensorInfo>& declared,
                    const std::vector<Tensor>& inputs) {
  if (inputs.size() != declared.size())
    return bad_model("{} inputs are given, the program has {}", inputs.size(), declared.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) return bad_model("input '{}' is undefined", declared[i].name);
    if (inputs[i].dtype() != declared[i].dtype)
      return bad_model("input '{}' is {}, not {}", declared[i].name, dtype_name(inputs[i].dtype()),
                       dtype_name(declared[i].dtype));
  }
  return {};
}

}  // namespace

Result<std::vector<Tensor>> run_bucketed(const BucketedInterface& interface, States& states,
                                         const std::vector<Tensor>& inputs,
                                         const ComputePadded& compute, bool keeps) {
  TRY(check_inputs(interface.inputs, inputs));
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const DimSizes sizes = TRY(sizes_of(interface.inputs, shapes, states.sizes()));
  const DimSizes padded = TRY(bucket_sizes(sizes, interface.buckets));
  TensorsByName tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DynamicTensorInfo& info = interface.inputs[i];
    const PaddedShape shape = PaddedShape::of(info, shapes[i], sizes, padded);
    const auto value = interface.padding.find(info.name);
    tensors[info.name] = shape.is_padded()
                             ? TRY(pad_tensor(inputs[i], shape,
                                              value == interface.padding.end() ? 0 : value->second))
                             : inputs[i];
  }
  TRY(states.add_to(tensors, sizes, padded));
  std::vector<Tensor> results = TRY(compute(tensors));
  const auto own = static_cast<std::ptrdiff_t>(interface.outputs.size());
  const std::vector<Tensor> added(results.begin() + own, results.end());
  results.resize(interface.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const PaddedShape shape =
        PaddedShape::of(interface.outputs[i], results[i].shape(), sizes, padded);
    if (shape.is_padded()) results[i] = TRY(cut_tensor(results[i], shape));
    // An output that is an input, in other words.
    if (std::any_of(tensors.begin(), tensors.end(), [&](const auto& input) {
          return overlap(memory_of(results[i]), memory_of(input.second));
        }))
      results[i] = results[i].clone();
  }
  if (keeps) TRY(states.append(added, sizes, padded));
  return results;
}

}  // namespace collage
