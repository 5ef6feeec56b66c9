// How large a real term's value can be. Where that is known the value is a number, and tests
// whether it is none can go: what is computed of integers by finite constants needs none. Where it
// is small it is cut off as an integer, at the ends of a type maybe, for which processors have
// instructions.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tensor_program/program.h"

namespace collage::tensor_program {

class Magnitudes {
 public:
  /// `program` must outlive this, and not change meanwhile.
  explicit Magnitudes(const Program& program) : program_(program) {}

  /// What the absolute value of a variable is not above.
  void know(const std::string& variable, double bound) { variables_[variable] = bound; }

  /// What its absolute value is not above, in exact arithmetic, for integers as for reals; nothing
  /// where that is not known, or so large that compiled code might make it infinite.
  std::optional<double> of(const Term& term);

  /// The term, cheaper, and of the same value:
  ///   select(is_nan(x), a, b) = b
  ///   int32(min(x, 255.0f)) = min(int32(x), 255)           likewise max
  ///   min(i, 250) + 5 = min(i + 5, 255)                    of such integers; likewise max
  Term simplified(const Term& term);

 private:
  std::optional<double> computed(const Term& term);
  std::optional<double> of_array(const std::string& name);
  Term as_integer(const Term& term, int64_t more);

  const Program& program_;
  std::unordered_map<std::string, double> variables_;
  std::unordered_map<std::string, std::optional<double>> arrays_;
  std::unordered_map<const TermNode*, std::pair<Term, std::optional<double>>> memo_;
};

/// Of all stages.
Program simplified_by_magnitude(Program program);

/// Of min(x, c) or max(x, c): c, where it is a whole number far from the ends of int32.
std::optional<int64_t> whole_limit(const Term& term);

/// The largest absolute value; nothing where some element is infinite or no number.
std::optional<double> magnitude_of_values(const Tensor& values);

}  // namespace collage::tensor_program
