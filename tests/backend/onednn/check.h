// Runs every variant that oneDNN offers for a function and compares it with the operators'
// reference kernels. Buffers carry canaries, outputs start as NaN, and tensors are packed into the
// variant's layouts element by element, by code that shares nothing with the backend.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace collage::testing {

// Makes graphs whose constants are seeded.
class Graph {
 public:
  explicit Graph(uint64_t seed = 1) : seed_(seed) {}
  Expr input(Shape shape);
  Expr constant(Shape shape, double scale = 1, double offset = 0);
  Expr scalar(float value);
  Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {});
  Function function(const Expr& result) const { return make_function(params_, result); }

 private:
  uint64_t seed_;
  std::vector<Expr> params_;
};

struct Checked {
  std::set<std::string> names;        // of the variants
  std::set<std::string> layouts;      // of their results
  std::vector<std::string> variants;  // whole text forms
};

// Fails the test when there is no variant, or one is wrong. `tolerance` is relative to the root of
// the mean square of the result.
Checked check(const Function& function, double tolerance = 2e-5);
// The same of the lowered variants; nothing on a processor that has none. Results' encodings stand
// in for their layouts. Split products keep to a tolerance of their own.
std::optional<Checked> check_lowered(const Function& function, double tolerance = 2e-2);
// The reason for which there is no variant; fails the test when there is one.
std::string refusal(const Function& function);

// The function's value by the operators' reference kernels.
Tensor evaluate(const Function& function, const std::vector<Tensor>& inputs);
Tensor random_tensor(Shape shape, uint64_t seed, double scale = 1, double offset = 0);

}  // namespace collage::testing
