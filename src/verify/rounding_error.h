// Determines how far each element of a function's outputs may be from the reference's when a kernel
// rounds as its variant states. Kernels and programs are judged by it.
//
// The reference is evaluated once more, with noise: the result of each operator, and what it adds
// up, is changed at random by as much as a kernel's rounding changes it (operator_rounding.h;
// Rounding for what a variant rounds besides). The distance of each element from its value without
// noise is how far this function, on these inputs, carries such errors there: no operator needs a
// rule for its amplification, a deep region is allowed only what it causes, and neighbouring
// elements have no effect.
//
//   noise of float32's size on the 53 convolutions of ResNet-50   outputs change by 1e-5 of their
//                                                                 root mean square
//
// One draw of noise may leave an element where it was by chance. So an element is taken to move by
// its own change or by the median change of those of about its magnitude (magnitudes.h), whichever
// is more; and before a result is refused for few elements, more noise is drawn, until the
// element's own change is known.
//
// Noise is scaled up, since the reference rounds too, and the change of the outputs scaled down
// again. Where the function jumps (comparisons, floor, indices) operators return their results
// without noise: such results must be equal. Results of qnn.quantize may be neighbours in few
// places (verify/quantisation_steps.h). The reference itself may lie so near a jump that noise
// decides the side: before a result is refused for few elements, and for quantised functions
// always, noise is drawn that passes through jumps, and each element may take the value that gives.
// Sums of dequantised tensors lie on the middle of two integers in half of all places if their
// scales are multiples of one another.
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

// If more elements than one in this number are wrong, that is not chance.
inline constexpr int64_t kChanceOneIn = 64;

class RoundingErrors {
 public:
  // Evaluates the reference. Calls of function literals in `function` are inlined first.
  static Result<RoundingErrors> of(const Function& function, std::vector<Tensor> inputs);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& expected() const { return expected_; }

  // Compares a kernel's output with the reference's, for what its variant rounds.
  Result<Difference> compare(size_t output, const Tensor& actual, const Rounding& rounding);
  // Compares with inputs that hold the ends of the number range (with_ends): a number may stand for
  // NaN, and NaN for a number, which is counted. Noise is drawn only if model_tolerance refuses the
  // output.
  Result<Difference> compare_at_ends(size_t output, const Tensor& actual, const Rounding& rounding);
  // Compares a program's output with what is expected, which may come from another runtime: what
  // roundings move is allowed beyond the tolerance.
  Result<Difference> compare(size_t output, const Tensor& actual, const Tensor& expected,
                             const Rounding& rounding, Tolerance tolerance);

  // Returns the tolerance of each output by the draws of noise made so far (one at least).
  Result<std::vector<Tolerance>> tolerances(const Rounding& rounding);
  // How far roundings move each element of an output, in root mean square, with a margin.
  using Movement = std::shared_ptr<const std::vector<double>>;
  Result<Movement> moved(size_t output, const Rounding& rounding);

 private:
  // What noise stands for: the function's own arithmetic, or a field of Rounding.
  // kQuantisation: results of qnn.quantize, some of which are neighbours of what they should be.
  // kDecisions: arithmetic, and noise passes through jumps.
  enum class Kind { kArithmetic, kFactors, kFixedPoint, kTensors, kQuantisation, kDecisions };
  struct Source {
    Kind kind;
    int tile = 0;     // of convolutions, which err; 0: all operators do
    double sums = 1;  // so many times what others' kernels do
    auto operator<=>(const Source&) const = default;
  };
  struct Part {
    Source source;
    double times;
  };
  // How far the elements of each output moved: the root mean square over the draws, or the most of
  // neighbours and decisions, which do not scale.
  struct Moves {
    int draws = 0;
    std::vector<std::vector<double>> of;
    std::vector<std::vector<double>> most;  // of one draw, by all of its noise
  };

  // Tolerances kept for reuse: variants of one function are compared one after the other.
  static constexpr size_t kMostKnown = 8;
  struct Known {
    size_t output;
    Rounding rounding;
    Movement movement;
  };

  RoundingErrors(Function function, std::vector<Tensor> inputs)
      : function_(std::move(function)), inputs_(std::move(inputs)) {}
  Result<Tolerance> tolerance(size_t output, const Rounding& rounding);
  // Compares again with decisions and more draws while it may be chance that elements are wrong: if
  // they are few, or roundings move them far.
  Result<Difference> while_in_doubt(const std::function<Result<Difference>()>& compare);
  std::vector<Part> parts_of(const Rounding& rounding) const;
  Result<const Moves*> moves(const Source& source);
  Status draw(const Source& source, Moves& moves);
  Result<std::vector<Tensor>> evaluate_with_noise(const Source& source, double amplitude,
                                                  uint64_t seed);
  double amplitude(const Source& source) const;
  // Of a call that jumps, in that turn of a loop; null otherwise.
  const std::vector<Tensor>* clean_results(const CallNode& call, size_t turn) const {
    const auto turns = jumping_.find(&call);
    return turns != jumping_.end() && turn < turns->second.size() ? &turns->second[turn] : nullptr;
  }

  Function function_;  // flat
  std::vector<Tensor> inputs_, expected_;
  // Results without noise, of each turn of a loop.
  std::unordered_map<const CallNode*, std::vector<std::vector<Tensor>>> jumping_;
  std::map<Source, Moves> known_;
  std::vector<Known> moved_;
  int draws_ = 1, most_draws_ = 1;
  double most_products_ = 0;  // that an element adds up
  bool quantises_ = false, halves_ = false, decisions_ = false;
  bool amplified_ = false;  // float32's roundings move elements far
};

}  // namespace collage
