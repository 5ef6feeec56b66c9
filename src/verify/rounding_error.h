// How far each element of a function's outputs may be from the reference's when a kernel rounds as
// its variant says, and nothing else is wrong: what kernels and programs are judged by.
//
// The reference is evaluated once more, with noise: after each operator the result, and before it
// what it adds up, is changed at random by as much as a kernel's rounding changes it
// (operator_rounding.h; Rounding for what a variant rounds besides). How far each element then is
// from what it was without noise is how far this function, on these inputs, carries such errors
// there: no rule for any operator's amplification is needed, a deep region gets no more than it
// causes, and what stands beside an element counts for nothing.
//
//   noise of float32's size on the 53 convolutions of ResNet-50   outputs change by 1e-5 of their
//                                                                 root mean square
//
// One draw of noise may leave an element where it was by chance. So an element is taken to move by
// what it does itself or by the median of those of about its magnitude (magnitudes.h), whichever is
// more; and before a result is refused for few elements, more noise is drawn, until what an element
// itself moves is known.
//
// Noise is made larger than what it stands for, since the reference rounds too, and the change of
// the outputs smaller again. Where the function jumps (comparisons, floor, indices) operators give
// what they give without noise: such results are expected to be equal. Those of qnn.quantize are
// expected to be neighbours in few places (verify/quanta.h). Besides, the reference itself may lie
// so near a jump that noise decides on which side: before a result is refused for few elements, and
// for quantised functions always, noise is drawn that passes through jumps, and each element may be
// what that makes of it, alone. Sums of dequantised tensors lie on the middle of two integers in
// half of all places where their scales are multiples of one another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/rounding.h"
#include "ir/expr.h"
#include "verify/comparison.h"

namespace collage {

// Of more elements than one in so many no error is by chance.
inline constexpr int64_t kChanceOneIn = 64;

class RoundingErrors {
 public:
  // Evaluates the reference. `function`: calls of function literals are inlined first.
  static Result<RoundingErrors> of(const Function& function, std::vector<Tensor> inputs);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& expected() const { return expected_; }

  // Whether a kernel's output agrees with the reference's, for what its variant rounds.
  Result<Difference> compare(size_t output, const Tensor& actual, const Rounding& rounding);
  // The same with inputs that hold the ends of what numbers can be (with_ends): what should be NaN
  // may be anything, and what should be a number NaN, which is counted. Noise is drawn only where
  // model_tolerance refuses the output.
  Result<Difference> compare_at_ends(size_t output, const Tensor& actual, const Rounding& rounding);
  // The same of a program's output and what it must be, which may be another's than the
  // reference's: what roundings move is allowed besides the tolerance.
  Result<Difference> compare(size_t output, const Tensor& actual, const Tensor& expected,
                             const Rounding& rounding, Tolerance tolerance);

  // For each output, what a kernel may err by, by the draws of noise made until now (one at least).
  Result<std::vector<Tolerance>> tolerances(const Rounding& rounding);
  // How far roundings move each element of an output, in root mean square, with a margin.
  using Movement = std::shared_ptr<const std::vector<double>>;
  Result<Movement> moved(size_t output, const Rounding& rounding);

 private:
  // What noise stands for: the function's own arithmetic, or a field of Rounding.
  // kQuanta: results of qnn.quantize, some of which are neighbours of what they should be.
  // kDecisions: arithmetic, and what the function jumps to is what noise decides.
  enum class Kind { kArithmetic, kFactors, kFixedPoint, kTensors, kQuanta, kDecisions };
  struct Source {
    Kind kind;
    int tile = 0;     // of convolutions, which err
    double sums = 1;  // so many times what plain sums do
    auto operator<=>(const Source&) const = default;
  };
  struct Part {
    Source source;
    double times;
  };
  // How far the elements of each output moved: the root mean square over the draws, or the most of
  // neighbours and decisions, a part of which is none.
  struct Moves {
    int draws = 0;
    std::vector<std::vector<double>> of;
  };

  // What `moved` gave: variants of one function are compared one after the other.
  static constexpr size_t kMostKnown = 8;
  struct Known {
    size_t output;
    Rounding rounding;
    Movement movement;
  };

  RoundingErrors(Function function, std::vector<Tensor> inputs)
      : function_(std::move(function)), inputs_(std::move(inputs)) {}
  Result<Tolerance> tolerance(size_t output, const Rounding& rounding);
  // Compares again with decisions and more draws while few elements are wrong, which may be chance.
  Result<Difference> while_in_doubt(const std::function<Result<Difference>()>& compare);
  std::vector<Part> parts_of(const Rounding& rounding) const;
  Result<const Moves*> moves(const Source& source);
  Status draw(const Source& source, Moves& moves);
  Result<std::vector<Tensor>> evaluate_with_noise(const Source& source, double amplitude,
                                                  uint64_t seed);
  double amplitude(const Source& source) const;

  Function function_;  // flat
  std::vector<Tensor> inputs_, expected_;
  std::unordered_map<const CallNode*, std::vector<Tensor>> jumping_;  // results without noise
  std::map<Source, Moves> known_;
  std::vector<Known> moved_;
  int draws_ = 1, most_draws_ = 1;
  bool quantises_ = false, halves_ = false, decisions_ = false;
};

}  // namespace collage
