#include "collage/context.h"

#include "base/no_exceptions.h"
#include "runtime/executor.h"

namespace collage {

Context::Context(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Status Context::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&] {
    outputs.resize(executor_->plan().outputs.size());
    return executor_->run_next(inputs, outputs);
  });
}

Result<std::vector<Tensor>> Context::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
