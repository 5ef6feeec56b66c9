// How far a function's outputs may be from the reference's when a kernel rounds as its variant
// says, and nothing else is wrong: what a kernel's tolerance is derived from.
//
// The reference is evaluated once more, with noise: after each operator the result, and before it
// what it adds up, is changed at random by as much as a kernel's rounding changes it
// (operator_rounding.h; Rounding for what a variant rounds besides). How far the outputs are then
// from those without noise is how far this function, on these inputs, carries such errors: no rule
// for any operator's amplification is needed, and a deep region gets no more than it causes.
//
//   noise of float32's size on the 53 convolutions of ResNet-50   outputs change by 1e-5 of their
//                                                                 root mean square
//
// Noise is made larger than what it stands for, since the reference rounds too, and the change of
// the outputs smaller again. Where the function jumps (comparisons, floor, indices) operators give
// what they give without noise: such results are expected to be equal. Those of qnn.quantize are
// expected to be neighbours in few places (verify/quanta.h).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/rounding.h"
#include "ir/expr.h"
#include "verify/comparison.h"

namespace collage {

class RoundingErrors {
 public:
  // Evaluates the reference. `function`: calls of function literals are inlined first.
  static Result<RoundingErrors> of(const Function& function, std::vector<Tensor> inputs);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& expected() const { return expected_; }

  // For each output, what a kernel may err by. The first call for a kind of rounding evaluates the
  // function once more (a few times where tensors are so small that one draw of noise says little).
  Result<std::vector<Tolerance>> tolerances(const Rounding& rounding);

 private:
  // What noise stands for: the function's own arithmetic, or a field of Rounding.
  // kQuanta: results of qnn.quantize, some of which are neighbours of what they should be.
  enum class Source { kArithmetic, kFactors, kFixedPoint, kTensors, kQuanta };
  // How far an output moved.
  struct Deviation {
    double squares = 0;  // sum over elements
    double count = 0;
    double peak = 0;  // the largest, divided by 1 + |b| / rms(b)
  };

  RoundingErrors(Function function, std::vector<Tensor> inputs)
      : function_(std::move(function)), inputs_(std::move(inputs)) {}
  Result<const std::vector<Deviation>*> deviations(Source source);
  Result<std::vector<Tensor>> evaluate_with_noise(Source source, double amplitude, uint64_t seed);
  double amplitude(Source source) const;
  int draws() const;

  Function function_;  // flat
  std::vector<Tensor> inputs_, expected_;
  std::vector<double> rms_;  // of the expected outputs' finite elements
  std::unordered_map<const CallNode*, std::vector<Tensor>> jumping_;  // results without noise
  std::unordered_map<int, std::vector<Deviation>> known_;             // by source
  bool quantises_ = false;
};

}  // namespace collage
