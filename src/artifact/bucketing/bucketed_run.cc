#include "artifact/bucketing/bucketed_run.h"

#include <algorithm>

#include "runtime/device_tensors.h"
#include "runtime/memory_overlap.h"
#include "runtime/tensor_type.h"

namespace collage {

namespace {

Status check_inputs(const std::vector<TensorInfo>& declared, const std::vector<Tensor>& inputs) {
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

Status check_outputs(const BucketedInterface& interface, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& results, const std::vector<Tensor>& outputs) {
  std::vector<TensorMemory> ins, outs;
  for (const Tensor& input : inputs) ins.push_back(memory_of(input));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outs.push_back(outputs[i].defined() ? memory_of(outputs[i]) : TensorMemory());
    const TensorType made{results[i].shape(), results[i].dtype()};
    if (const TensorType given{outputs[i].shape(), outputs[i].dtype()};
        outputs[i].defined() && given != made)
      return bad_model("output '{}': expected {}, got {}", interface.outputs[i].name,
                       made.to_string(), given.to_string());
  }
  return check_outputs_apart(
      ins, outs, [&](size_t i) { return interface.inputs[i].name; },
      [&](size_t i) { return interface.outputs[i].name; });
}

}  // namespace

Status run_bucketed(const BucketedInterface& interface, States& states,
                    const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                    const ComputePadded& compute, bool keeps) {
  TRY(check_inputs(interface.inputs, inputs));
  TRY(check_on_host(inputs, "input"));
  TRY(check_on_host(outputs, "output"));
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const DimSizes sizes = TRY(sizes_of(interface.inputs, shapes, states.sizes()));
  const DimSizes padded = TRY(bucket_sizes(sizes, interface.buckets));
  TensorsByName tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = interface.inputs[i];
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
    if (const bool is_ours = i >= outputs.size() || !outputs[i].defined();
        is_ours && std::any_of(tensors.begin(), tensors.end(), [&](const auto& input) {
          return overlap(memory_of(results[i]), memory_of(input.second));
        }))
      results[i] = results[i].clone();
  }
  outputs.resize(results.size());
  TRY(check_outputs(interface, inputs, results, outputs));
  if (keeps) TRY(states.append(added, sizes, padded));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined())
      std::copy_n(static_cast<const char*>(results[i].raw()), results[i].bytes(),
                  static_cast<char*>(outputs[i].raw()));
    else
      outputs[i] = std::move(results[i]);
  }
  return {};
}

}  // namespace collage
