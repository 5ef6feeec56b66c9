#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/no_exceptions.h"
#include "collage/program.h"
#include "runtime/of_process.h"
#include "runtime/thread_team.h"

namespace collage {

namespace internal {

struct PoolOfContexts {
  explicit PoolOfContexts(size_t most) : unmade(most) {}
  std::mutex mutex;
  std::condition_variable given_back;
  std::vector<Context> free;
  size_t unmade;  // contexts that may still be made
};

// A program and its contexts; runs that it leased a context to keep it alive.
struct PooledProgram {
  PooledProgram(Program shared, size_t most)
      : program(std::move(shared)),
        contexts([most] { return std::make_unique<PoolOfContexts>(most); }) {}
  const Program program;
  OfProcess<PoolOfContexts> contexts;  // threads of a parent process give none back
};

struct PoolImpl {
  PoolImpl(const Program& program, size_t count)
      : most(count), pooled(std::make_shared<PooledProgram>(program, count)) {}
  const size_t most;
  std::atomic<std::shared_ptr<PooledProgram>> pooled;
};

}  // namespace internal

namespace {

// A context of the pool, for the time of a run.
class Lease {
 public:
  static Result<Lease> take(internal::PooledProgram& pooled) {
    internal::PoolOfContexts& pool = pooled.contexts.get();
    std::unique_lock lock(pool.mutex);
    pool.given_back.wait(lock, [&] { return !pool.free.empty() || pool.unmade > 0; });
    if (!pool.free.empty()) {
      Lease lease(pool, std::move(pool.free.back()));
      pool.free.pop_back();
      return lease;
    }
    --pool.unmade;
    lock.unlock();
    Result<Context> made = pooled.program.make_context();
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

ContextPool::ContextPool(Program program, size_t most)
    : impl_(std::make_shared<internal::PoolImpl>(
          program, most > 0 ? most
                            : static_cast<size_t>(std::max(
                                  1, ThreadTeam::available_cores() / program.threads())))) {}

Status ContextPool::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&]() -> Status {
    const std::shared_ptr<internal::PooledProgram> pooled = impl_->pooled;
    Lease lease = TRY(Lease::take(*pooled));
    return lease.context().run(inputs, outputs);
  });
}

void ContextPool::replace(Program program) {
  impl_->pooled = std::make_shared<internal::PooledProgram>(std::move(program), impl_->most);
}

Result<std::vector<Tensor>> ContextPool::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
