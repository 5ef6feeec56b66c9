// Potentials: prices that bound from below what a partial cover still costs.
//
// The problem relaxed to a linear program has a variable for each column and one for each
// conversion into a form, a row for each node (covered once) and a row for each (group, form,
// reader): who reads the form needs it given or converted. Its dual prices are a lower bound, and
// stay one for every partial cover:
//
//   remaining cost ≥ Σ over uncovered nodes of node price
//                  − Σ over existing (group, form), uncovered readers of reader price
//
// The prices are made feasible after solving (Clp works to a tolerance and may be stopped early),
// so the bound holds whatever the solver did.
#pragma once

#include "search/compact.h"

namespace collage::search {

struct Potentials {
  std::vector<double> node;  // per node; includes the price of a result's plain form
  // Per group: forms × readers, in the order of Group::readers.
  std::vector<std::vector<double>> reader;
  // Per column, not negative: a cover that uses it costs at least bound + reduced.
  std::vector<double> reduced;
  double bound = 0;  // of the whole problem
  // The program's solution: by how much each column is used. Often a cover (decode.h), which is
  // then a cheapest one; only as good as the solver left it.
  std::vector<double> solution;

  double reader_price(uint32_t group, uint32_t form, size_t reader, size_t readers) const {
    return this->reader[group][form * readers + reader];
  }
};

Potentials solve_potentials(const CompactProblem& compact, double max_seconds);

}  // namespace collage::search
