#include "dynamic/dynamic_program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/no_exceptions.h"
#include "dynamic/host/host_operators.h"
#include "dynamic/padding_check.h"
#include "targets/backends.h"

namespace collage {

namespace {

using internal::DynamicProgramImpl;

std::vector<DynamicTensorInfo> infos_of(const std::vector<ModelInput>& declared) {
  std::vector<DynamicTensorInfo> infos;
  for (const ModelInput& tensor : declared)
    infos.push_back({tensor.name, tensor.dims, tensor.dtype, tensor.has_shape});
  return infos;
}

std::set<std::string> names_of(const std::map<std::string, ForeignOperator>& operators) {
  std::set<std::string> names;
  for (const auto& [name, function] : operators) names.insert(name);
  return names;
}

// Options that name nothing of the model are mistakes.
Status check_names(const DynamicOptions& options, const std::vector<DynamicTensorInfo>& inputs) {
  const auto has_dim = [&](const std::string& name) {
    for (const DynamicTensorInfo& input : inputs)
      for (const std::string& dim : input.dims)
        if (const std::optional<DimSum> sum = DimSum::parse(dim))
          for (const DimSum::Term& term : sum->terms)
            if (term.name == name) return true;
    return false;
  };
  for (const auto& [name, sizes] : options.buckets) {
    if (!has_dim(name)) return usage_error("buckets for '{}', which is no dimension", name);
    if (sizes.empty() || *std::min_element(sizes.begin(), sizes.end()) < 1)
      return usage_error("buckets for '{}' must be sizes of at least 1", name);
  }
  for (const auto& [name, value] : options.padding)
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&name = name](const DynamicTensorInfo& info) { return info.name == name; }))
      return usage_error("padding for '{}', which is no input", name);
  return {};
}

// Whether there are only so many shapes, since the user listed the sizes of every dimension.
bool has_few_shapes(const DynamicOptions& options, const std::vector<DynamicTensorInfo>& inputs) {
  const auto is_listed = [&](const std::string& dim) {
    const std::optional<DimSum> sum = DimSum::parse(dim);
    return sum && std::all_of(sum->terms.begin(), sum->terms.end(), [&](const DimSum::Term& term) {
             return term.name.empty() || options.buckets.count(term.name) != 0;
           });
  };
  return std::all_of(inputs.begin(), inputs.end(), [&](const DynamicTensorInfo& input) {
    return input.has_shape && std::all_of(input.dims.begin(), input.dims.end(), is_listed);
  });
}

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

Result<std::unique_ptr<DynamicProgramImpl>> load(const std::filesystem::path& path,
                                                 const DynamicOptions& options) {
  register_all();
  auto impl = std::make_unique<DynamicProgramImpl>();
  impl->options = options;
  impl->context.options = options.program;
  if (impl->context.options.weight_forms == nullptr)
    impl->context.options.weight_forms = make_weight_forms();
  impl->context.compile_on_demand = options.compile_on_demand;
  frontend::StagedModelOptions staged;
  staged.constants = options.constants;
  staged.runs_on_host = [names = names_of(options.operators)](const ::onnx::NodeProto& node) {
    return dynamic::is_host_operator(node.domain(), node.op_type()) ||
           names.count(frontend::qualified_op(node)) != 0;
  };
  impl->context.operators = options.operators;
  impl->context.model = TRY(frontend::StagedModel::open(path, std::move(staged)));
  impl->inputs = infos_of(impl->context.model->inputs());
  impl->outputs = infos_of(impl->context.model->outputs());
  TRY(check_names(options, impl->inputs));
  impl->context.measures = has_few_shapes(options, impl->inputs);
  if (!options.buckets.empty())
    TRY(check_padding(impl->context, options, impl->inputs, impl->outputs));
  frontend::RemainingGraph graph = impl->context.model->whole();
  impl->states = TRY(States::take(options, impl->inputs, impl->outputs, graph));
  impl->graph.emplace(impl->context, std::move(graph), "main");
  return impl;
}

bool shares_memory(const Tensor& a, const Tensor& b) {
  const auto* first = static_cast<const char*>(a.raw());
  const auto* other = static_cast<const char*>(b.raw());
  return first != nullptr && other != nullptr && first < other + b.bytes() &&
         other < first + a.bytes();
}

Result<std::vector<Tensor>> run_once(DynamicProgramImpl& impl, const std::vector<Tensor>& inputs,
                                     bool keep_states) {
  TRY(check_inputs(impl.inputs, inputs));
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const DimSizes sizes = TRY(sizes_of(impl.inputs, shapes, impl.states.sizes()));
  const DimSizes padded = TRY(bucket_sizes(sizes, impl.options.buckets));
  TensorsByName tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PaddedShape shape = PaddedShape::of(impl.inputs[i], shapes[i], sizes, padded);
    const auto value = impl.options.padding.find(impl.inputs[i].name);
    tensors[impl.inputs[i].name] =
        shape.is_padded() ? TRY(pad_tensor(inputs[i], shape,
                                           value == impl.options.padding.end() ? 0 : value->second))
                          : inputs[i];
  }
  TRY(impl.states.add_to(tensors, sizes, padded));
  std::vector<Tensor> results = TRY(impl.graph->run(std::move(tensors)));
  const auto own = static_cast<std::ptrdiff_t>(impl.outputs.size());
  const std::vector<Tensor> added(results.begin() + own, results.end());
  results.resize(impl.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const PaddedShape shape = PaddedShape::of(impl.outputs[i], results[i].shape(), sizes, padded);
    if (shape.is_padded()) results[i] = TRY(cut_tensor(results[i], shape));
    // An output that is an input, in other words.
    if (std::any_of(inputs.begin(), inputs.end(),
                    [&](const Tensor& input) { return shares_memory(results[i], input); }))
      results[i] = results[i].clone();
  }
  if (keep_states) TRY(impl.states.append(added, sizes, padded));
  return results;
}

}  // namespace

Result<DynamicProgram> DynamicProgram::load(const std::filesystem::path& path,
                                            const DynamicOptions& options) {
  return without_exceptions([&]() -> Result<DynamicProgram> {
    return DynamicProgram(TRY(collage::load(path, options)));
  });
}

DynamicProgram::DynamicProgram(std::unique_ptr<internal::DynamicProgramImpl> impl)
    : impl_(std::move(impl)) {}
DynamicProgram::DynamicProgram(DynamicProgram&&) noexcept = default;
DynamicProgram& DynamicProgram::operator=(DynamicProgram&&) noexcept = default;
DynamicProgram::~DynamicProgram() = default;

const std::vector<DynamicTensorInfo>& DynamicProgram::inputs() const { return impl_->inputs; }
const std::vector<DynamicTensorInfo>& DynamicProgram::outputs() const { return impl_->outputs; }

Result<std::vector<Tensor>> DynamicProgram::run(const std::vector<Tensor>& inputs) {
  const std::lock_guard<std::mutex> lock(impl_->running);
  return without_exceptions([&] { return run_once(*impl_, inputs, true); });
}

Status DynamicProgram::prepare(const std::vector<Tensor>& inputs) {
  const std::lock_guard<std::mutex> lock(impl_->running);
  impl_->context.compile_on_demand = true;
  const bool measures = std::exchange(impl_->context.measures, true);
  Result<std::vector<Tensor>> results =
      without_exceptions([&] { return run_once(*impl_, inputs, false); });
  impl_->context.compile_on_demand = impl_->options.compile_on_demand;
  impl_->context.measures = measures;
  return results ? Status() : results.status();
}

void DynamicProgram::reset() {
  const std::lock_guard<std::mutex> lock(impl_->running);
  impl_->states.reset();
}

std::vector<SpecialisationInfo> DynamicProgram::specialisations() const {
  const std::lock_guard<std::mutex> lock(impl_->running);
  std::vector<SpecialisationInfo> result;
  for (const auto& info : impl_->context.made) result.push_back(*info);
  return result;
}

}  // namespace collage
