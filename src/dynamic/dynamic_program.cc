#include "dynamic/dynamic_program.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "dynamic/host/host_operators.h"
#include "dynamic/padding_check.h"
#include "dynamic/saved_stages.h"
#include "dynamic/take_states.h"
#include "runtime/thread_team.h"

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

// A dimension that may have any size, as the model says it; none where there are only so many
// shapes, since the user listed the sizes of every dimension.
std::optional<std::string> open_dimension(const DynamicOptions& options,
                                          const std::vector<DynamicTensorInfo>& inputs) {
  const auto is_listed = [&](const std::string& dim) {
    const std::optional<DimSum> sum = DimSum::parse(dim);
    return sum && std::all_of(sum->terms.begin(), sum->terms.end(), [&](const DimSum::Term& term) {
             return term.name.empty() || options.buckets.count(term.name) != 0;
           });
  };
  for (const DynamicTensorInfo& input : inputs) {
    if (!input.has_shape) return "?";
    for (const std::string& dim : input.dims)
      if (!is_listed(dim)) return dim;
  }
  return std::nullopt;
}

// A file's stages, and the options that they were compiled with.
Result<std::shared_ptr<SavedStages>> open_saved(const std::filesystem::path& path,
                                                DynamicOptions& options) {
  std::optional<PublicKey> signer;
  if (!options.public_key.empty()) signer = TRY(PublicKey::parse(options.public_key));
  return SavedStages::load(TRY(ArtifactFile::open(path, signer)), options)
      .with_context(path.string());
}

Result<std::unique_ptr<DynamicProgramImpl>> load(const std::filesystem::path& path,
                                                 DynamicOptions options) {
  register_all();
  auto impl = std::make_unique<DynamicProgramImpl>();
  impl->model = path.filename().string();
  if (path.extension() == kArtifactExtension) {
    impl->context.saved = TRY(open_saved(path, options));
  } else if (!options.public_key.empty()) {
    return usage_error("{}: a model has no signature", path.string());
  }
  impl->options = options;
  impl->context.options = options.program;
  if (impl->context.options.weight_forms == nullptr)
    impl->context.options.weight_forms = make_weight_forms();
  impl->context.compile_on_demand = options.compile_on_demand;
  frontend::StagedModelOptions staged;
  if (impl->context.saved != nullptr) {
    const SharedBytes content = TRY(impl->context.saved->model());
    staged.content = content.text();
    staged.owner = content.data;
  }
  staged.constants = options.constants;
  staged.data_roots = options.data_roots;
  staged.runs_on_host = [names = names_of(options.operators)](const ::onnx::NodeProto& node) {
    return dynamic::is_host_operator(node.domain(), node.op_type()) ||
           names.count(frontend::qualified_op(node)) != 0;
  };
  impl->context.operators = options.operators;
  impl->context.model = TRY(frontend::StagedModel::open(path, std::move(staged)));
  BucketedInterface& interface = impl->interface;
  interface.inputs = infos_of(impl->context.model->inputs());
  interface.outputs = infos_of(impl->context.model->outputs());
  interface.buckets = options.buckets;
  interface.padding = options.padding;
  TRY(check_names(options, interface.inputs));
  impl->context.measures = !open_dimension(options, interface.inputs);
  if (!options.buckets.empty() && impl->context.saved == nullptr)
    TRY(check_padding(impl->context, options, interface.inputs, interface.outputs));
  frontend::RemainingGraph graph = impl->context.model->whole();
  interface.states = TRY(take_states(options, interface.inputs, interface.outputs, graph));
  impl->states = States(interface.states, interface.padding);
  impl->graph.emplace(impl->context, std::move(graph), "main");
  return impl;
}

Result<std::vector<Tensor>> run_once(DynamicProgramImpl& impl, const std::vector<Tensor>& inputs,
                                     bool keeps_states) {
  return run_bucketed(
      impl.interface, impl.states, inputs,
      [&](const TensorsByName& tensors) { return impl.graph->run(tensors); }, keeps_states);
}

// Compiles whatever `run` meets as the options ask.
Status prepare_by(DynamicProgramImpl& impl, const std::function<Status()>& run) {
  impl.context.compile_on_demand = true;
  const bool measures = std::exchange(impl.context.measures, true);
  const Status status = without_exceptions(run);
  impl.context.compile_on_demand = impl.options.compile_on_demand;
  impl.context.measures = measures;
  return status;
}

// Every combination of the buckets' sizes.
std::vector<DimSizes> all_sizes(const std::map<std::string, std::vector<int64_t>>& buckets) {
  std::vector<DimSizes> result = {{}};
  for (const auto& [name, sizes] : buckets) {
    std::vector<DimSizes> more;
    for (const int64_t size : std::set<int64_t>(sizes.begin(), sizes.end()))
      for (DimSizes one : result) {
        one[name] = size;
        more.push_back(std::move(one));
      }
    result = std::move(more);
  }
  return result;
}

Status run_all_buckets(DynamicProgramImpl& impl) {
  frontend::StagedModel& model = *impl.context.model;
  const std::vector<DynamicTensorInfo> inputs = infos_of(model.inputs());  // states too
  if (const std::optional<std::string> open = open_dimension(impl.options, inputs))
    return usage_error("dimension '{}' has no buckets", *open);
  for (const DimSizes& sizes : all_sizes(impl.options.buckets))
    TRY(impl.graph->run(TRY(random_tensors(model, inputs, sizes, {}, 0))));
  return {};
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

const std::vector<DynamicTensorInfo>& DynamicProgram::inputs() const {
  return impl_->interface.inputs;
}
const std::vector<DynamicTensorInfo>& DynamicProgram::outputs() const {
  return impl_->interface.outputs;
}

Result<std::vector<Tensor>> DynamicProgram::run(const std::vector<Tensor>& inputs) {
  const std::lock_guard<std::mutex> lock(impl_->running);
  return without_exceptions([&] { return run_once(*impl_, inputs, true); });
}

Status DynamicProgram::prepare(const std::vector<Tensor>& inputs) {
  const std::lock_guard<std::mutex> lock(impl_->running);
  return prepare_by(*impl_, [&]() -> Status {
    TRY(run_once(*impl_, inputs, false));
    return {};
  });
}

Status DynamicProgram::prepare_buckets() {
  const std::lock_guard<std::mutex> lock(impl_->running);
  return prepare_by(*impl_, [&] { return run_all_buckets(*impl_); });
}

Status DynamicProgram::save(const std::filesystem::path& path,
                            const std::string& signing_key) const {
  const std::lock_guard<std::mutex> lock(impl_->running);
  return without_exceptions([&]() -> Status {
    const ProgramOptions& options = impl_->options.program;
    const PlanFacts facts{ThreadTeam(options.threads).size(), impl_->model, options.max_error,
                          options.threads <= 0, TRY(SigningKey::parse_if_given(signing_key))};
    if (impl_->graph->has_stages()) return write_artifact(path, *impl_, facts);
    return write_artifact(path,
                          CompiledSpecialisations{impl_->interface, impl_->graph->outputs(),
                                                  TRY(impl_->graph->compiled())},
                          facts);
  });
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
