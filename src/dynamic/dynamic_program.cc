#include "dynamic/dynamic_program.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "compiler/symbolic_model.h"
#include "dynamic/host/host_operators.h"
#include "dynamic/padding_check.h"
#include "dynamic/saved_stages.h"
#include "dynamic/symbolic_source.h"
#include "dynamic/take_states.h"
#include "frontend/script/script.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

using internal::DynamicProgram;

std::vector<TensorInfo> infos_of(const std::vector<ModelInput>& declared) {
  std::vector<TensorInfo> infos;
  for (const ModelInput& tensor : declared)
    infos.push_back(open_tensor(tensor.name, tensor.dims, tensor.dtype, tensor.has_shape));
  return infos;
}

std::set<std::string> names_of(const std::map<std::string, ForeignOperator>& operators) {
  std::set<std::string> names;
  for (const auto& [name, function] : operators) names.insert(name);
  return names;
}

// Options that name nothing of the model are mistakes.
Status check_names(const DynamicOptions& options, const std::vector<TensorInfo>& inputs) {
  const auto has_dim = [&](const std::string& name) {
    for (const TensorInfo& input : inputs)
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
                     [&name = name](const TensorInfo& info) { return info.name == name; }))
      return usage_error("padding for '{}', which is no input", name);
  return {};
}

// A dimension that may have any size, as the model says it; none where there are only so many
// shapes, since the user listed the sizes of every dimension.
std::optional<std::string> open_dimension(const DynamicOptions& options,
                                          const std::vector<TensorInfo>& inputs) {
  const auto is_listed = [&](const std::string& dim) {
    const std::optional<DimSum> sum = DimSum::parse(dim);
    return sum && std::all_of(sum->terms.begin(), sum->terms.end(), [&](const DimSum::Term& term) {
             return term.name.empty() || options.buckets.count(term.name) != 0;
           });
  };
  for (const TensorInfo& input : inputs) {
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

// The program of a model over symbols, or of ONNX in stages.
Result<std::shared_ptr<DynamicProgram>> program_of(std::string name,
                                                   std::shared_ptr<frontend::StageSource> model,
                                                   std::shared_ptr<SavedStages> saved,
                                                   const DynamicOptions& options) {
  auto impl = std::make_shared<DynamicProgram>();
  impl->model = std::move(name);
  impl->options = options;
  impl->context.options = options.program;
  if (impl->context.options.weight_forms == nullptr)
    impl->context.options.weight_forms = make_weight_forms();
  impl->context.compile_on_demand = options.compile_on_demand;
  impl->context.operators = options.operators;
  impl->context.model = std::move(model);
  impl->context.saved = std::move(saved);
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
  impl->inputs = interface.inputs;
  impl->outputs = interface.outputs;
  impl->threads = ThreadTeam(options.program.threads).size();
  impl->graph.emplace(impl->context, std::move(graph), "main");
  return impl;
}

Result<std::shared_ptr<DynamicProgram>> open(const SymbolicModel& model, const std::string& name,
                                             const DynamicOptions& options) {
  if (!options.constants.empty() || !options.operators.empty())
    return usage_error("{}: constants and operators are of ONNX models", name);
  if (!options.public_key.empty()) return usage_error("{}: a model has no signature", name);
  const tensor_program::SymbolicModule& module = model.impl().module;
  if (module.counted().empty()) return program_of(name, symbolic_source(model), nullptr, options);
  if (!options.buckets.empty() || !options.states.empty())
    return unsupported("{}: a run counts sizes: it takes no buckets and no states", name);
  const auto parts = std::make_shared<const tensor_program::ModuleParts>(
      TRY(tensor_program::ModuleParts::of(module)));
  auto impl = TRY(program_of(name, symbolic_source(model), nullptr, options));
  impl->parts.emplace(impl->context, parts);
  return impl;
}

Result<std::shared_ptr<DynamicProgram>> open(const std::filesystem::path& path,
                                             DynamicOptions options) {
  register_all();
  if (tensor_program::is_module_text(path))
    return open(TRY(SymbolicModel::load(path)), path.string(), options);
  std::shared_ptr<SavedStages> saved;
  frontend::StagedModelOptions staged;
  if (path.extension() == kArtifactExtension) {
    saved = TRY(open_saved(path, options));
    const SharedBytes content = TRY(saved->model());
    staged.content = content.text();
    staged.owner = content.data;
  } else if (!options.public_key.empty()) {
    return usage_error("{}: a model has no signature", path.string());
  }
  staged.constants = options.constants;
  staged.data_roots = options.data_roots;
  staged.runs_on_host = [names = names_of(options.operators)](const ::onnx::NodeProto& node) {
    return dynamic::is_host_operator(node.domain(), node.op_type()) ||
           names.count(frontend::qualified_op(node)) != 0;
  };
  auto model = TRY(frontend::StagedModel::open(path, std::move(staged)));
  return program_of(path.filename().string(), std::move(model), std::move(saved), options);
}

// Compiles whatever `run` meets as the options ask.
Status prepare_by(DynamicProgram& impl, const std::function<Status()>& run) {
  const std::lock_guard<std::mutex> lock(impl.running);
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

Status run_all_buckets(DynamicProgram& impl) {
  frontend::StageSource& model = *impl.context.model;
  const std::vector<TensorInfo> inputs = infos_of(model.inputs());  // states too
  if (const std::optional<std::string> open = open_dimension(impl.options, inputs))
    return usage_error("dimension '{}' has no buckets", *open);
  for (const DimSizes& sizes : all_sizes(impl.options.buckets))
    TRY(impl.graph->run(TRY(random_tensors(model, inputs, sizes, {}, 0))));
  return {};
}

}  // namespace

namespace internal {

namespace {

struct OwnContext : ContextImpl {
  explicit OwnContext(DynamicProgram& of) : program(of) {}
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    const std::lock_guard<std::mutex> lock(program.running);
    return program.run(inputs, outputs, true);
  }
  void reset() override {
    const std::lock_guard<std::mutex> lock(program.running);
    program.states.reset();
  }
  DynamicProgram& program;
};

}  // namespace

DynamicProgram::DynamicProgram() { own_ = std::make_unique<OwnContext>(*this); }

Status DynamicProgram::run(const std::vector<Tensor>& given, std::vector<Tensor>& results,
                           bool keeps_states) {
  return run_bucketed(
      interface, states, given, results,
      [&](const TensorsByName& tensors) {
        return parts ? parts->run(tensors) : graph->run(tensors);
      },
      keeps_states);
}

Result<std::unique_ptr<ContextImpl>> DynamicProgram::make_context() const {
  return unsupported(
      "it is compiled for the shapes that come: contexts are of what `save` wrote of it");
}

Status DynamicProgram::prepare(const std::vector<Tensor>& given) {
  return prepare_by(*this, [&] {
    std::vector<Tensor> results;
    return run(given, results, false);
  });
}

Status DynamicProgram::prepare_buckets() {
  return prepare_by(*this, [&] { return run_all_buckets(*this); });
}

Status DynamicProgram::save(const std::filesystem::path& path, const std::string& signing_key) {
  const std::lock_guard<std::mutex> lock(running);
  const ProgramOptions& compiled = options.program;
  const PlanFacts facts{threads, model, compiled.max_error, compiled.threads <= 0,
                        TRY(SigningKey::parse_if_given(signing_key))};
  if (parts)
    return write_artifact(path,
                          CompiledSpecialisations{interface, graph->outputs(),
                                                  TRY(parts->compiled()), parts->parts()},
                          facts);
  if (graph->has_stages()) return write_artifact(path, *this, facts);
  return write_artifact(
      path, CompiledSpecialisations{interface, graph->outputs(), TRY(graph->compiled()), nullptr},
      facts);
}

std::vector<SpecialisationInfo> DynamicProgram::specialisations() const {
  const std::lock_guard<std::mutex> lock(running);
  std::vector<SpecialisationInfo> result;
  for (const auto& info : context.made) result.push_back(*info);
  return result;
}

}  // namespace internal

internal::DynamicProgram& dynamic_program(const Program& program) {
  return dynamic_cast<internal::DynamicProgram&>(program.any_impl());
}

Result<Program> Program::compile(const std::filesystem::path& path, const DynamicOptions& options) {
  return without_exceptions(
      [&]() -> Result<Program> { return Program(TRY(collage::open(path, options))); });
}

Result<Program> Program::compile(const SymbolicModel& model, const DynamicOptions& options) {
  return without_exceptions([&]() -> Result<Program> {
    const std::filesystem::path& path = model.impl().path;
    const std::string name = path.empty() ? "a model over symbols" : path.filename().string();
    return Program(TRY(collage::open(model, name, options)));
  });
}

}  // namespace collage
