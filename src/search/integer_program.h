// IntegerProgram: minimises costs · x where each x is 0 or 1 and rows bound sums of them. It is
// solved as a linear program first, by Clp. A solution of whole numbers is the optimum. Otherwise
// Cbc solves the program by branch and bound.
//
//   const int x = program.add_variable(3.5);
//   program.add_row({{{x, 1}, {y, 1}}, 1, 1});
//   IntegerSolution solution = TRY(program.solve({}));
//
// Both libraries are loaded when the first program is solved. Rows may be added between solutions.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "base/result.h"

namespace collage::search {

inline constexpr double kUnbounded = std::numeric_limits<double>::max();

struct Term {
  int variable;
  double value;
};

struct Row {
  std::vector<Term> terms;
  double low = -kUnbounded, high = kUnbounded;
};

// Limits of one solution.
struct SolverLimits {
  int branches = 2'000;
  double seconds = 10;  // of processor time; results depend on the machine where it is reached
  // Relative: a solution that costs that much more than the bound counts as the optimum.
  double gap = 0;
};

struct IntegerSolution {
  std::vector<bool> used;  // by variable: whether it is 1
  double bound = 0;        // no solution costs less
  bool proven = false;     // to be the optimum
  bool from_linear_program = false;
  size_t branches = 0;  // looked at
};

class IntegerProgram {
 public:
  IntegerProgram();
  IntegerProgram(IntegerProgram&&) noexcept;
  ~IntegerProgram();

  int add_variable(double cost);
  void add_row(Row row);
  size_t variables() const { return costs_.size(); }
  double cost(int variable) const { return costs_[static_cast<size_t>(variable)]; }
  void set_cost(int variable, double cost);
  // A variable that is not allowed is 0.
  void allow(int variable, bool allowed);

  // Returns the best solution found within the limits. kUnsupported: there is no solution or the
  // limits end the search before one is found; kUnavailable: a solver cannot be loaded.
  Result<IntegerSolution> solve(const SolverLimits& limits);

 private:
  struct Relaxed;
  Result<IntegerSolution> branch(const SolverLimits& limits, bool has_bound) const;

  std::vector<double> costs_, upper_;
  std::vector<Row> rows_;
  std::unique_ptr<Relaxed> relaxed_;
  bool upper_changed_ = false;
};

}  // namespace collage::search
