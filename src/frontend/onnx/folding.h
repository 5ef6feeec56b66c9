// Evaluates calls on constants while importing, so that shapes computed by the graph become known
// and their computation never reaches the module. Large results stay calls; the constant folding
// pass decides about them.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/run_sizes.h"
#include "ir/expr.h"

namespace collage::frontend {

class Folder {
 public:
  // `keeps_calls`: calls stay in the graph, which then holds for other sizes of its inputs too, and
  // what they evaluate to is known beside it. `run_sizes`: null where no size may be a run's.
  explicit Folder(bool keeps_calls = false, RunSizes* run_sizes = nullptr)
      : keeps_calls_(keeps_calls), run_sizes_(run_sizes) {}

  // Returns `call` itself, or the constant (or tuple of constants) that it evaluates to.
  Result<Expr> fold(Expr call);
  // Returns the value of a constant, or of what is known to have one; else null.
  const Tensor* value(const Expr& expr) const;
  // States what a variable is.
  void know(const Expr& variable, Tensor value);
  RunSizes* run_sizes() const { return run_sizes_; }

 private:
  struct Known {
    Expr expr;
    std::vector<Tensor> values;
  };

  bool collect_values(const Expr& arg, std::vector<Tensor>& values) const;

  const bool keeps_calls_;
  RunSizes* const run_sizes_;
  std::unordered_map<const ExprNode*, Known> known_;
  size_t folded_bytes_ = 0;
  double folded_flops_ = 0;
};

}  // namespace collage::frontend
