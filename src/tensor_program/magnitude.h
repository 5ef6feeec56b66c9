// How large a real term's value can be. Where that is known the value is a number, and tests
// whether it is none can go: what is computed of integers by finite constants needs none.
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

  /// The term without choices for what is no number where nothing is:
  /// select(is_nan(x), a, b) = b.
  Term without_nan_tests(const Term& term);

 private:
  std::optional<double> computed(const Term& term);
  std::optional<double> of_array(const std::string& name);

  const Program& program_;
  std::unordered_map<std::string, double> variables_;
  std::unordered_map<std::string, std::optional<double>> arrays_;
  std::unordered_map<const TermNode*, std::pair<Term, std::optional<double>>> memo_;
};

/// Of all stages.
Program without_nan_tests(Program program);

/// The largest absolute value; nothing where some element is infinite or no number.
std::optional<double> magnitude_of_values(const Tensor& values);

}  // namespace collage::tensor_program
