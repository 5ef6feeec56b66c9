// Bounds the magnitude of a real term's values. A value with a known bound is a number, so tests
// for NaN can be dropped: integers combined with finite constants need none. A value with a small
// bound is cut off as an integer, maybe at the ends of a type, for which processors have
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
  /// `program` must outlive this and stay unchanged.
  explicit Magnitudes(const Program& program) : program_(program) {}

  /// States an upper bound of a variable's absolute value.
  void know(const std::string& variable, double bound) { variables_[variable] = bound; }

  /// Returns an upper bound of the absolute value, in exact arithmetic, for integers as for reals;
  /// none if it is not known, or so large that compiled code might make it infinite.
  std::optional<double> of(const Term& term);

  /// Returns a cheaper term of the same value:
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

/// Simplifies all stages.
Program simplified_by_magnitude(Program program);

/// Returns c of min(x, c) or max(x, c), if it is a whole number far from the ends of int32.
std::optional<int64_t> whole_limit(const Term& term);

/// Returns the largest absolute value; none if some element is infinite or NaN.
std::optional<double> magnitude_of_values(const Tensor& values);

}  // namespace collage::tensor_program
