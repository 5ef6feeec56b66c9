// CoverProgram: the covers of a problem as the solutions of an integer program.
//
//   x[c]         column c is used (compact.h)
//   y[g, a, b]   group g is converted from form a to form b
//
//   each node is in exactly one used column
//   a form that a column reads is given by a column or converted into; so is a result's plain form
//   a form that is converted from is given, or converted into from a third form
//   the squared errors of the columns that are used add up to no more than max_error squared
//
// A solution may still hold kernels that wait for one another, or conversions that feed each other
// in a ring. Rows against these are added when a solution has them, and the program is solved
// again.
#pragma once

#include <optional>

#include "search/compact.h"
#include "search/integer_program.h"

namespace collage::search {

// The conditions of one solution.
struct Variation {
  const char* origin = kCheapest;  // Cover::origin
  std::vector<bool> usable = {};   // by candidate of the problem; all of them where it is empty
  double launch = 0;               // seconds that each kernel and each conversion costs more
};

struct CoverSolution {
  Cover cover;       // its seconds are those of the problem, whatever the variation
  double bound = 0;  // no cover of the variation costs less
  bool proven = false;
  bool from_linear_program = false;
  size_t branches = 0;  // looked at
};

class CoverProgram {
 public:
  // `compact` must outlive it.
  explicit CoverProgram(const CompactProblem& compact);

  // Returns the cheapest cover, as far as the limits allow.
  Result<CoverSolution> solve(const SolverLimits& limits, const Variation& variation = {});
  // Excludes covers with all of these kernels (kernels_of) from later solutions.
  void exclude(const std::vector<uint32_t>& kernels);
  // Identifies the kernels of a cover by their nodes and targets.
  std::vector<uint32_t> kernels_of(const Cover& cover) const;

 private:
  struct Arc {
    uint32_t from, to;
    int variable;
  };
  struct Supply {                               // of a group
    std::vector<std::vector<uint32_t>> givers;  // by form: columns
    std::vector<Arc> arcs;
    struct Want {
      uint32_t reader, form;
      std::vector<uint32_t> columns;
    };
    std::vector<Want> wants;  // by reader and form
  };
  using Forms = std::vector<bool>;  // a set of forms of a group

  void number_arcs(uint32_t group);
  void limit_errors();
  void add_supply_row(uint32_t group, const Forms& forms, std::vector<Term> terms,
                      double wanted = 0, std::optional<uint32_t> except = std::nullopt);
  void vary(const Variation& variation);
  // Returns none if rows had to be added.
  std::optional<Cover> decode(const std::vector<bool>& used);
  // Returns, by group and form, the arc that makes it, or that it is given, or neither.
  std::vector<std::vector<int>> sources(const std::vector<bool>& used) const;
  bool add_rows_against_rings(const std::vector<bool>& used,
                              const std::vector<std::vector<int>>& sources);
  // Returns the used columns in an order they can run in; none if a row had to be added.
  std::optional<std::vector<uint32_t>> run_order(const std::vector<bool>& used);
  void add_row_against_deadlock(const std::vector<uint32_t>& ring);

  const CompactProblem& compact_;
  IntegerProgram program_;  // the columns are its first variables
  std::vector<Supply> supplies_;
  std::vector<double> costs_;        // by variable, without a variation
  std::vector<uint32_t> kernel_of_;  // by candidate of the problem
  std::vector<uint32_t> depth_;      // by node: calls on the longest path to it
  Variation current_;
};

}  // namespace collage::search
