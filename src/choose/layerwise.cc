#include "choose/layerwise.h"

#include <fmt/format.h>

#include <cstring>

#include "measure/host_conversion.h"
#include "measure/staged_kernel.h"
#include "measure/trial.h"
#include "verify/rounding_error.h"

namespace collage {

namespace {

class Checker {
 public:
  Checker(const Plan& plan, const std::map<std::string, StepMeaning>& kernels,
          const CompileOptions& options)
      : plan_(plan),
        kernels_(kernels),
        options_(options),
        team_(options.threads),
        values_(plan.buffers.size()),
        last_use_(plan.buffers.size(), 0) {
    for (size_t s = 0; s < plan.steps.size(); ++s)
      for (BufferId id : plan.steps[s].inputs) last_use_[id] = s;
  }

  Result<LayerwiseResult> run(std::span<const Tensor> inputs) {
    for (size_t id = 0; id < plan_.buffers.size(); ++id) {
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.place == Buffer::Place::kInput) values_[id] = inputs[buffer.index];
      if (buffer.place == Buffer::Place::kConstant) values_[id] = buffer.constant;
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      TRY(check(plan_.steps[s]).with_context(plan_.steps[s].name));
      for (BufferId id : plan_.steps[s].inputs)
        if (last_use_[id] == s) values_[id] = Tensor();
    }
    return std::move(result_);
  }

 private:
  Status check(const Step& step) {
    auto known = kernels_.find(step.name);
    std::vector<Tensor> arguments, expected;
    std::vector<TensorType> types;         // of the results
    std::optional<RoundingErrors> errors;  // of a kernel
    Tolerance of_conversion;
    for (BufferId id : step.inputs) arguments.push_back(values_[id]);
    if (known == kernels_.end()) {
      expected = arguments;
      const Buffer& source = plan_.buffers[step.inputs[0]];
      types = {source.type};
      of_conversion = conversion_tolerance(source.encoding.dtype,
                                           plan_.buffers[step.outputs[0]].encoding.dtype);
    } else {
      const Function& function = known->second.function;
      // A buffer may hold a view of what the kernel before computed: the shape is the parameter's.
      for (size_t i = 0; i < arguments.size(); ++i)
        arguments[i] = arguments[i].reshaped(function->params[i]->tensor_type().shape);
      errors.emplace(TRY(RoundingErrors::of(function, arguments)));
      expected = errors->expected();
      types = function->result_type().leaves();
    }
    std::vector<Tensor> actual = TRY(execute(step, arguments));
    for (size_t i = 0; i < actual.size(); ++i) {
      LayerDifference layer{step.name, step.target, i, types[i].shape,
                            errors ? TRY(errors->compare(i, actual[i], known->second.rounding))
                                   : compare_tensors(actual[i], expected[i], of_conversion)};
      if (!layer.difference.within && !result_.first_wrong) result_.first_wrong = layer;
      if (layer.difference.worst_of_allowed > result_.worst.difference.worst_of_allowed)
        result_.worst = std::move(layer);
      values_[step.outputs[i]] = expected[i];
    }
    ++result_.steps;
    return {};
  }

  // The step's outputs for these (plain) inputs, made plain.
  Result<std::vector<Tensor>> execute(const Step& step, const std::vector<Tensor>& arguments) {
    std::vector<Tensor> inputs, outputs, results;
    std::vector<void*> input_data, output_data;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Buffer& buffer = plan_.buffers[step.inputs[i]];
      inputs.push_back(
          TRY(convert_on_host(arguments[i].raw(), buffer.type, plain_encoding(buffer.type),
                              buffer.encoding, options_)));
      input_data.push_back(inputs.back().raw());
    }
    for (BufferId id : step.outputs) {
      outputs.push_back(
          TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(plan_.buffers[id].bytes)})));
      std::memset(outputs.back().raw(), 0xff, outputs.back().bytes());
      output_data.push_back(outputs.back().raw());
    }
    Tensor workspace = TRY(
        Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(step.kernel->workspace_bytes())}));
    TRY(run_on_host(step, {input_data.data(), output_data.data(), workspace.raw()}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Buffer& buffer = plan_.buffers[step.outputs[i]];
      auto owner = std::make_shared<Tensor>(TRY(convert_on_host(
          outputs[i].raw(), buffer.type, buffer.encoding, plain_encoding(buffer.type), options_)));
      void* data = owner->raw();
      results.push_back(
          Tensor::share(buffer.type.dtype, buffer.type.shape, std::move(owner), data));
    }
    return results;
  }

  // The arguments lie on the host, wherever the step reads and writes.
  Status run_on_host(const Step& step, const KernelArgs& args) {
    const auto types_of = [&](const std::vector<BufferId>& ids, std::vector<Encoding>& encodings) {
      std::vector<TensorType> types;
      for (BufferId id : ids) {
        types.push_back(plan_.buffers[id].type);
        encodings.push_back(plan_.buffers[id].encoding);
      }
      return types;
    };
    Variant variant;
    const std::vector<TensorType> inputs = types_of(step.inputs, variant.inputs),
                                  outputs = types_of(step.outputs, variant.outputs);
    const std::shared_ptr<Kernel> kernel =
        TRY(StagedKernel::around(step.kernel, variant, inputs, outputs, step.device));
    return run_kernel(*kernel, args, team_);
  }

  const Plan& plan_;
  const std::map<std::string, StepMeaning>& kernels_;
  const CompileOptions& options_;
  ThreadTeam team_;
  std::vector<Tensor> values_;  // what the reference computed, by buffer
  std::vector<size_t> last_use_;
  LayerwiseResult result_;
};

}  // namespace

Result<LayerwiseResult> verify_layerwise(const Plan& plan,
                                         const std::map<std::string, StepMeaning>& kernels,
                                         std::span<const Tensor> inputs,
                                         const CompileOptions& options) {
  return Checker(plan, kernels, options).run(inputs);
}

std::string element_index(const Shape& shape, int64_t position) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = position % shape[d];
    position /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace collage
