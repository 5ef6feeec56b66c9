#include "collage/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/load_artifact.h"
#include "artifact/program_impl.h"
#include "artifact/specialised_program.h"
#include "base/no_exceptions.h"

namespace collage {

namespace internal {

namespace {

std::vector<TensorInfo> infos(const std::vector<PlanSignature>& signatures) {
  std::vector<TensorInfo> result;
  for (const PlanSignature& signature : signatures)
    result.push_back({signature.name, signature.type.shape, signature.type.dtype});
  return result;
}

Status not_compiling() {
  return usage_error("the program is compiled already, for all the shapes that it takes");
}

}  // namespace

Status ProgramImpl::prepare(const std::vector<Tensor>&) { return not_compiling(); }
Status ProgramImpl::prepare_buckets() { return not_compiling(); }
Status ProgramImpl::save(const std::filesystem::path&, const std::string&) {
  return usage_error("it was loaded from a file: copy that one");
}

Result<ContextImpl*> ProgramImpl::own_context() {
  const std::lock_guard lock(making_.get());
  if (own_ == nullptr) own_ = TRY(make_context());
  return own_.get();
}

Status FixedContext::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  outputs.resize(executor.plan().outputs.size());
  return executor.run_next(inputs, outputs);
}

FixedProgram::FixedProgram(std::shared_ptr<const Plan> made, int count) : plan(std::move(made)) {
  inputs = infos(plan->inputs);
  outputs = infos(plan->outputs);
  threads = count;
}

std::vector<SpecialisationInfo> FixedProgram::specialisations() const {
  SpecialisationInfo info{"main", ""};
  for (const TensorInfo& input : inputs)
    info.shapes += fmt::format("{}{} {}", info.shapes.empty() ? "" : ", ", input.name,
                               shape_to_string(input.shape));
  info.kernels = plan->steps.size();
  return {info};
}

Result<std::unique_ptr<ContextImpl>> FixedProgram::make_context() const {
  return std::make_unique<FixedContext>(TRY(Executor::create_beside(plan, threads)));
}

}  // namespace internal

Result<Program> open_program(Result<std::shared_ptr<ArtifactFile>> opened, int threads) {
  std::shared_ptr<ArtifactFile> file = TRY(std::move(opened));
  file->use_threads(threads);
  if (file->manifest().has_specialisations())
    return Program(
        std::make_shared<internal::SpecialisedProgram>(TRY(LoadedSpecialisations::load(file))));
  const LoadedArtifact loaded = TRY(load_artifact(std::move(file)));
  return Program(std::make_shared<internal::FixedProgram>(loaded.plan, loaded.threads()));
}

Result<Program> Program::load(const std::filesystem::path& path, int threads) {
  return without_exceptions(
      [&] { return open_program(ArtifactFile::open(path), threads).with_context(path.string()); });
}

Result<Program> Program::load(const void* data, size_t bytes, std::shared_ptr<const void> owner) {
  return without_exceptions(
      [&] { return open_program(ArtifactFile::from_memory(data, bytes, std::move(owner))); });
}

Result<Program> Program::load_signed(const std::filesystem::path& path,
                                     const std::string& public_key, int threads) {
  return without_exceptions([&]() -> Result<Program> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_program(ArtifactFile::open(path, key), threads).with_context(path.string());
  });
}

Result<Program> Program::load_signed(const void* data, size_t bytes, const std::string& public_key,
                                     std::shared_ptr<const void> owner) {
  return without_exceptions([&]() -> Result<Program> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_program(ArtifactFile::from_memory(data, bytes, std::move(owner), key));
  });
}

const std::vector<TensorInfo>& Program::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Program::outputs() const { return impl_->outputs; }
std::vector<SpecialisationInfo> Program::specialisations() const {
  return impl_->specialisations();
}
int Program::threads() const { return impl_->threads; }

Status Program::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&]() -> Status {
    internal::ContextImpl* const context = TRY(impl_->own_context());
    return context->run(inputs, outputs);
  });
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

void Program::reset() {
  if (const Result<internal::ContextImpl*> context = impl_->own_context(); context.ok())
    (*context)->reset();
}

Result<Context> Program::make_context() const {
  return without_exceptions(
      [&]() -> Result<Context> { return Context(TRY(impl_->make_context())); });
}

Status Program::prepare(const std::vector<Tensor>& inputs) { return impl_->prepare(inputs); }
Status Program::prepare_buckets() { return impl_->prepare_buckets(); }

Status Program::save(const std::filesystem::path& path, const std::string& signing_key) const {
  return without_exceptions([&] { return impl_->save(path, signing_key); });
}

Context::Context(std::unique_ptr<internal::ContextImpl> impl) : impl_(std::move(impl)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Status Context::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&] { return impl_->run(inputs, outputs); });
}

Result<std::vector<Tensor>> Context::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

void Context::reset() { impl_->reset(); }

}  // namespace collage
