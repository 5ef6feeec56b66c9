// ReferenceCheck: computes the expected outputs of a program with the reference, with the model's
// own weights, on inputs of several value ranges and on those that the user gives:
//
//   1   between -1 and 1; programs are timed with these too
//   2   between -0.01 and 0.01
//   3   between -8 and 8, a quarter of them zero
//   4   as the first, but for a few of each input: 1e5, -0 and denormal numbers
//   5   under strict accuracy: besides infinities and NaN; where each element is computed by itself
//       the largest numbers too, and by default as well, but for NaN
//
// each from a seed of its own, integers within what their uses allow. The reference is slow, so it
// runs once for each inputs when its answer is needed, and on the first of them alone if it takes
// long. Two kinds of inputs prove little and are replaced or left out:
//
//   silent     some output is all zero, all NaN or all the same: other ranges are tried
//   overflow   NaN or infinity where other ranges have none: left out
//
// Seeds are drawn anew in every process (check_seed.h). Each element is judged by a scale of its
// own (comparison.h); where that refuses it, by how far the reference itself moves there when its
// numbers change in their last places (rounding_error.h), which is evaluated then.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "runtime/executor.h"
#include "verify/rounding_error.h"

namespace collage {

struct ReferenceInputs {
  std::string name;  // "inputs between -1 and 1"
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;  // outputs of the reference
  // What roundings move, once ReferenceCheck::compare needed it.
  std::shared_ptr<std::optional<RoundingErrors>> errors =
      std::make_shared<std::optional<RoundingErrors>>();
  // A few inputs lie at the ends of the number range, and outputs may depend on them alone.
  bool at_ends = false;
  // A program may give a number where NaN should be.
  bool may_lose_nan = false;
};

// How far a program's outputs are from the reference's, within what is allowed.
struct ProgramError {
  double error = 0;  // the largest, as a part of the largest of the values like it
  // The error exceeds the tolerance, but not what the reference itself moves by: for some elements;
  // for more elements than lie next to zero by chance.
  bool beyond = false, excused = false;
};

struct ReferenceCheckOptions {
  std::vector<std::vector<Tensor>> given;  // the user's, each one tensor an input
  bool all_ranges = false;                 // however long the reference takes
  double seconds = 4;  // else: as many ranges as it can do in that time, but one at least
  // What programs may round beyond float32's arithmetic: by default Winograd's tiles.
  Rounding rounding = rounding::kWinograd4;
};

class ReferenceCheck {
 public:
  explicit ReferenceCheck(Function function, ReferenceCheckOptions options = {});
  void allow(double seconds) { options_.seconds = seconds; }

  // Returns the inputs that programs are timed with, without running the reference.
  Result<std::span<const Tensor>> timing_inputs();
  Result<std::span<const ReferenceInputs>> seeded();
  size_t given_count() const { return options_.given.size(); }
  Result<std::span<const ReferenceInputs>> given(size_t position);
  const std::string& given_digest(size_t position) const { return given_digests_[position]; }

  // Compares an output with the expected one.
  Result<Difference> compare(const ReferenceInputs& asked, size_t output, const Tensor& actual,
                             const Tolerance& tolerance);
  // Returns the largest error of any output on the seeded inputs, or on the user's at a position.
  // kVerification: one is beyond what is allowed.
  Result<ProgramError> error(Executor& executor, const Tolerance& tolerance);
  Result<ProgramError> error_on_given(size_t position, Executor& executor,
                                      const Tolerance& tolerance);

  // Returns why agreement on these inputs proves nothing for an output, by its position; outputs
  // that do not depend on the inputs are left out.
  std::map<size_t, std::string> silent(std::span<const ReferenceInputs> inputs) const;

  bool is_strict() const { return options_.rounding.none(); }
  bool wants_all_ranges() const { return options_.all_ranges; }
  bool tried_all_ranges() const { return tried_all_ranges_; }
  double seconds() const { return seconds_; }          // that checking took until now
  double run_seconds() const { return run_seconds_; }  // of the program that was run last

 private:
  Result<ReferenceInputs> ask(std::string name, std::vector<Tensor> inputs);
  Status ask_about_ranges();
  Result<ProgramError> error_on(const ReferenceInputs& asked, Executor& executor,
                                const Tolerance& tolerance);

  const Function function_;
  ReferenceCheckOptions options_;
  std::vector<std::string> given_digests_;
  std::vector<bool> depends_on_inputs_;  // by output
  std::vector<Tensor> timing_inputs_;
  std::vector<ReferenceInputs> seeded_;
  std::vector<std::vector<ReferenceInputs>> given_;  // one each, or none yet
  bool tried_all_ranges_ = false;
  double seconds_ = 0, run_seconds_ = 0;
};

}  // namespace collage
