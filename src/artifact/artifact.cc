#include "collage/artifact.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "artifact/load_artifact.h"
#include "artifact/open_program.h"
#include "base/no_exceptions.h"
#include "runtime/executor.h"
#include "runtime/of_process.h"
#include "runtime/thread_team.h"

namespace collage {

namespace internal {

struct ArtifactImpl {
  LoadedArtifact loaded;
  std::vector<TensorInfo> inputs, outputs;
};

struct PoolOfContexts {
  explicit PoolOfContexts(size_t most) : unmade(most) {}
  std::mutex mutex;
  std::condition_variable given_back;
  std::vector<Context> free;
  size_t unmade;  // contexts that may still be made
};

struct PoolImpl {
  PoolImpl(Artifact shared, size_t most)
      : program(std::move(shared)),
        contexts([most] { return std::make_unique<PoolOfContexts>(most); }) {}
  const Artifact program;
  OfProcess<PoolOfContexts> contexts;  // threads of a parent process give none back
};

}  // namespace internal

namespace {

std::vector<TensorInfo> infos(const std::vector<PlanSignature>& signatures) {
  std::vector<TensorInfo> result;
  for (const PlanSignature& signature : signatures)
    result.push_back({signature.name, signature.type.shape, signature.type.dtype});
  return result;
}

// A context of the pool, for the time of a run.
class Lease {
 public:
  static Result<Lease> take(internal::PoolImpl& impl) {
    internal::PoolOfContexts& pool = impl.contexts.get();
    std::unique_lock lock(pool.mutex);
    pool.given_back.wait(lock, [&] { return !pool.free.empty() || pool.unmade > 0; });
    if (!pool.free.empty()) {
      Lease lease(pool, std::move(pool.free.back()));
      pool.free.pop_back();
      return lease;
    }
    --pool.unmade;
    lock.unlock();
    Result<Context> made = impl.program.make_context();
    if (made.ok()) return Lease(pool, std::move(made).value());
    lock.lock();
    ++pool.unmade;
    pool.given_back.notify_one();
    return std::move(made).status();
  }
  Lease(Lease&& other) noexcept : pool_(other.pool_), context_(std::move(other.context_)) {
    other.pool_ = nullptr;
  }
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (pool_ == nullptr) return;
    const std::lock_guard lock(pool_->mutex);
    pool_->free.push_back(std::move(context_));
    pool_->given_back.notify_one();
  }
  Context& context() { return context_; }

 private:
  Lease(internal::PoolOfContexts& pool, Context context)
      : pool_(&pool), context_(std::move(context)) {}
  internal::PoolOfContexts* pool_;
  Context context_;
};

}  // namespace

Result<Artifact> open_artifact(Result<std::shared_ptr<ArtifactFile>> opened, int threads) {
  auto impl = std::make_shared<internal::ArtifactImpl>();
  std::shared_ptr<ArtifactFile> file = TRY(std::move(opened));
  file->use_threads(threads);
  impl->loaded = TRY(load_artifact(std::move(file)));
  impl->inputs = infos(impl->loaded.plan->inputs);
  impl->outputs = infos(impl->loaded.plan->outputs);
  return Artifact(std::shared_ptr<const internal::ArtifactImpl>(std::move(impl)));
}

Result<Artifact> Artifact::load(const std::filesystem::path& path, int threads) {
  return without_exceptions(
      [&] { return open_artifact(ArtifactFile::open(path), threads).with_context(path.string()); });
}

Result<Artifact> Artifact::load(const void* data, size_t bytes, std::shared_ptr<const void> owner) {
  return without_exceptions(
      [&] { return open_artifact(ArtifactFile::from_memory(data, bytes, std::move(owner))); });
}

Result<Artifact> Artifact::load_signed(const std::filesystem::path& path,
                                       const std::string& public_key, int threads) {
  return without_exceptions([&]() -> Result<Artifact> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_artifact(ArtifactFile::open(path, key), threads).with_context(path.string());
  });
}

Result<Artifact> Artifact::load_signed(const void* data, size_t bytes,
                                       const std::string& public_key,
                                       std::shared_ptr<const void> owner) {
  return without_exceptions([&]() -> Result<Artifact> {
    const PublicKey key = TRY(PublicKey::parse(public_key));
    return open_artifact(ArtifactFile::from_memory(data, bytes, std::move(owner), key));
  });
}

const std::vector<TensorInfo>& Artifact::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Artifact::outputs() const { return impl_->outputs; }
int Artifact::threads() const { return impl_->loaded.threads(); }

Result<Context> Artifact::make_context() const {
  return without_exceptions([&]() -> Result<Context> {
    return Context(std::make_unique<Executor>(
        TRY(Executor::create_beside(impl_->loaded.plan, impl_->loaded.threads()))));
  });
}

ContextPool::ContextPool(Artifact program, size_t most)
    : impl_(std::make_shared<internal::PoolImpl>(
          program, most > 0 ? most
                            : static_cast<size_t>(std::max(
                                  1, ThreadTeam::available_cores() / program.threads())))) {}

Status ContextPool::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&]() -> Status {
    Lease lease = TRY(Lease::take(*impl_));
    return lease.context().run(inputs, outputs);
  });
}

Result<std::vector<Tensor>> ContextPool::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
