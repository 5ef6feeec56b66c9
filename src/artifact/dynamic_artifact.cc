#include "collage/dynamic_artifact.h"

#include <map>

#include "artifact/open_program.h"
#include "artifact/specialisations.h"
#include "base/no_exceptions.h"
#include "runtime/executor.h"

namespace collage {

namespace internal {

struct DynamicArtifactImpl {
  std::shared_ptr<LoadedSpecialisations> loaded;
};

struct DynamicContextImpl {
  std::shared_ptr<LoadedSpecialisations> program;
  States states;
  std::map<size_t, Executor> executors;  // by the specialisation's number

  Result<Executor*> executor_of(size_t number);
  Result<std::vector<Tensor>> compute(TensorsByName tensors);
};

// Null where nothing is computed.
Result<Executor*> DynamicContextImpl::executor_of(size_t number) {
  const auto known = executors.find(number);
  if (known != executors.end()) return &known->second;
  const std::shared_ptr<const Plan> plan = TRY(program->plan(number));
  if (plan == nullptr) return nullptr;
  Executor made = TRY(Executor::create_beside(plan, program->threads()));
  return &executors.emplace(number, std::move(made)).first->second;
}

Result<std::vector<Tensor>> DynamicContextImpl::compute(TensorsByName tensors) {
  const size_t number = TRY(program->find(tensors));
  const PlanForShapes& names = program->specialisations()[number];
  const auto take = [&](const std::string& name) -> Result<Tensor> {
    const auto it = tensors.find(name);
    if (it == tensors.end()) return bad_model("there is no tensor '{}'", name);
    return it->second;
  };
  for (const auto& [name, input] : names.aliases) tensors[name] = TRY(take(input));
  if (Executor* executor = TRY(executor_of(number)); executor != nullptr) {
    std::vector<Tensor> inputs, outputs(names.outputs.size());
    for (const std::string& name : names.inputs) inputs.push_back(TRY(take(name)));
    TRY(executor->run_next(inputs, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) tensors[names.outputs[i]] = std::move(outputs[i]);
  }
  std::vector<Tensor> results;
  for (const std::string& name : program->results()) {
    // What every run gives is ours.
    const auto constant = names.constants.find(name);
    results.push_back(constant != names.constants.end() ? constant->second.clone()
                                                        : TRY(take(name)));
  }
  return results;
}

}  // namespace internal

Result<DynamicArtifact> open_dynamic_artifact(Result<std::shared_ptr<ArtifactFile>> file,
                                              int threads) {
  auto impl = std::make_shared<internal::DynamicArtifactImpl>();
  std::shared_ptr<ArtifactFile> opened = TRY(std::move(file));
  opened->use_threads(threads);
  impl->loaded = TRY(LoadedSpecialisations::load(std::move(opened)));
  return DynamicArtifact(std::move(impl));
}

DynamicContext::DynamicContext(std::unique_ptr<internal::DynamicContextImpl> impl)
    : impl_(std::move(impl)) {}
DynamicContext::DynamicContext(DynamicContext&&) noexcept = default;
DynamicContext& DynamicContext::operator=(DynamicContext&&) noexcept = default;
DynamicContext::~DynamicContext() = default;

Result<std::vector<Tensor>> DynamicContext::run(const std::vector<Tensor>& inputs) {
  return without_exceptions([&] {
    return run_bucketed(impl_->program->interface(), impl_->states, inputs,
                        [&](const TensorsByName& tensors) { return impl_->compute(tensors); });
  });
}

void DynamicContext::reset() { impl_->states.reset(); }

Result<DynamicArtifact> DynamicArtifact::load(const std::filesystem::path& path, int threads) {
  return without_exceptions([&] {
    return open_dynamic_artifact(ArtifactFile::open(path), threads).with_context(path.string());
  });
}

Result<DynamicArtifact> DynamicArtifact::load(const void* data, size_t bytes,
                                              std::shared_ptr<const void> owner) {
  return without_exceptions([&] {
    return open_dynamic_artifact(ArtifactFile::from_memory(data, bytes, std::move(owner)));
  });
}

Result<DynamicArtifact> DynamicArtifact::load_signed(const std::filesystem::path& path,
                                                     const std::string& public_key, int threads) {
  return without_exceptions([&]() -> Result<DynamicArtifact> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_dynamic_artifact(ArtifactFile::open(path, key), threads)
        .with_context(path.string());
  });
}

Result<DynamicArtifact> DynamicArtifact::load_signed(const void* data, size_t bytes,
                                                     const std::string& public_key,
                                                     std::shared_ptr<const void> owner) {
  return without_exceptions([&]() -> Result<DynamicArtifact> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_dynamic_artifact(ArtifactFile::from_memory(data, bytes, std::move(owner), key));
  });
}

const std::vector<DynamicTensorInfo>& DynamicArtifact::inputs() const {
  return impl_->loaded->interface().inputs;
}

const std::vector<DynamicTensorInfo>& DynamicArtifact::outputs() const {
  return impl_->loaded->interface().outputs;
}

std::vector<std::string> DynamicArtifact::specialisations() const {
  std::vector<std::string> shapes;
  for (const PlanForShapes& one : impl_->loaded->specialisations())
    shapes.push_back(shapes_text(one.conditions));
  return shapes;
}

int DynamicArtifact::threads() const { return impl_->loaded->threads(); }

Result<DynamicContext> DynamicArtifact::make_context() const {
  return without_exceptions([&]() -> Result<DynamicContext> {
    auto impl = std::make_unique<internal::DynamicContextImpl>();
    impl->program = impl_->loaded;
    const BucketedInterface& interface = impl->program->interface();
    impl->states = States(interface.states, interface.padding);
    return DynamicContext(std::move(impl));
  });
}

}  // namespace collage
