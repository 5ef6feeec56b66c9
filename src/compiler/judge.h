// Judge: what a program's outputs must look like: the reference's, on seeded inputs and with the
// model's own weights.
#pragma once

#include <optional>

#include "cost/comparison.h"
#include "partition/dataflow_graph.h"
#include "runtime/executor.h"

namespace collage {

class Judge {
 public:
  static Result<Judge> create(const Function& function);
  const std::vector<Tensor>& inputs() const { return inputs_; }
  // The largest error of any output, as a part of its largest value. Fails (kVerification) where
  // one is beyond the tolerance.
  Result<double> error(Executor& executor, const Tolerance& tolerance) const;

 private:
  std::vector<Tensor> inputs_, expected_;
};

// The judge of a function, made when first asked for: the reference takes its time.
class LazyJudge {
 public:
  explicit LazyJudge(Function function) : function_(std::move(function)) {}
  Result<const Judge*> get();

 private:
  Function function_;
  std::optional<Judge> judge_;
};

}  // namespace collage
