#include "compiler/check_options.h"

#include "backend/targets/targets.h"
#include "base/result.h"
#include "choose/memory_limits.h"

namespace collage {

Status check_options(const Model& model, const ProgramOptions& options) {
  constexpr int kMostThreads = 1024;
  if (options.threads < 0 || options.threads > kMostThreads)
    return usage_error("{} threads: it is 1 to {}, or 0 for all cores", options.threads,
                       kMostThreads);
  if (!(options.max_error >= 0 && options.max_error <= 1))
    return usage_error("a max_error of {:g}: it is from 0 to 1", options.max_error);
  if (options.max_error > 0 && options.strict_accuracy)
    return usage_error(
        "--accuracy strict and --max-error exclude each other: one leaves out what rounds more "
        "than float32, the other allows it");
  TRY(parse_memory_limits(options.memory, TRY(parse_devices_flag(options.devices))));
  if (options.cost_model != nullptr && options.frozen_costs)
    return usage_error("a cost model and frozen costs exclude each other");
  if (!options.for_fingerprint.empty() &&
      (options.always_measure || options.cost_model != nullptr || options.max_error > 0))
    return usage_error("what is compiled for another machine is not measured: no {}",
                       options.max_error > 0 ? "--max-error" : "measuring");
  for (const std::vector<Tensor>& inputs : options.check_inputs) {
    if (inputs.size() != model.inputs().size())
      return bad_model("{} tensors are given to check with, the model has {} inputs", inputs.size(),
                       model.inputs().size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorInfo& info = model.inputs()[i];
      if (!inputs[i].defined() || inputs[i].shape() != info.shape ||
          inputs[i].dtype() != info.dtype)
        return bad_model("input '{}' is {} {}, the one given to check with {} {}", info.name,
                         dtype_name(info.dtype), shape_to_string(info.shape),
                         dtype_name(inputs[i].dtype()), shape_to_string(inputs[i].shape()));
    }
  }
  return {};
}

}  // namespace collage
