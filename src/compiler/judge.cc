#include "compiler/judge.h"

#include <algorithm>

#include "cost/synthetic.h"
#include "ops/interpreter.h"

namespace collage {

Result<Judge> Judge::create(const Function& function) {
  Judge judge;
  judge.inputs_ = TRY(synthetic_inputs(function, 11));
  judge.expected_ = TRY(interpret(function, judge.inputs_));
  return judge;
}

Result<double> Judge::error(Executor& executor, const Tolerance& tolerance) const {
  std::vector<Tensor> outputs(expected_.size());
  TRY(executor.run(inputs_, outputs));
  double largest = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Difference difference = compare_tensors(outputs[i], expected_[i], tolerance);
    if (!difference.within)
      return collage::error(ErrorCode::kVerification, "output {}: {}, {:.2g} of the largest value",
                            i, difference.reason, difference.max_rel);
    largest = std::max(largest, difference.max_rel);
  }
  return largest;
}

Result<const Judge*> LazyJudge::get() {
  if (!judge_) judge_ = TRY(Judge::create(function_));
  return &*judge_;
}

}  // namespace collage
