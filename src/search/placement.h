// Placement: the columns of a problem laid out along one dataflow order of its nodes, for the scan
// (scan.h).
//
// A column is applied at the last of its nodes before the first outside reader of its results; what
// it reads must be given by nodes before that position. That holds for every candidate with one
// exit. Where it does not hold in this order the column is `incompatible`.
#pragma once

#include "search/forms.h"
#include "search/potentials.h"

namespace collage::search {

// The positions that a column covers.
struct NodeSet {
  uint32_t at;                   // where it is applied
  std::vector<uint32_t> before;  // its positions below `at`, ascending
  std::vector<uint32_t> after;   // its positions above, ascending
  double reduced;                // least reduced cost of the columns that cover these
};

struct Placement {
  const CompactProblem* compact = nullptr;
  const Potentials* potentials = nullptr;
  std::vector<uint32_t> order;     // the node at each position
  std::vector<uint32_t> position;  // of each node

  struct Place {
    uint32_t column, set;
  };
  std::vector<NodeSet> sets;
  std::vector<std::vector<Place>> places;      // by position: the columns applied there
  std::vector<std::vector<uint32_t>> later;    // by position: sets that hold it, applied above;
                                               // least reduced cost first
  std::vector<std::vector<Detour>> detours;    // by column
  bool all_detours = true;                     // no column has more than are looked at
  std::vector<double> node_price;              // by column: of all its nodes
  std::vector<std::vector<uint32_t>> readers;  // by group: positions, in the order of its readers
  std::vector<uint32_t> incompatible;          // usable columns that cannot be applied

  // A layer lies before each position and one behind the last. Groups that may exist there and are
  // read further on; and the region it belongs to (scan.h): a cut begins a new one behind it.
  std::vector<std::vector<uint32_t>> live;
  std::vector<uint32_t> region;

  size_t layers() const { return order.size() + 1; }
  size_t regions() const { return region.empty() ? 0 : region.back() + 1; }
};

// Columns with usable[c] false are left out. `compact` and `potentials` must outlive the result.
Placement place_columns(const CompactProblem& compact, const Potentials& potentials,
                        std::vector<uint32_t> order, const std::vector<bool>& usable);

}  // namespace collage::search
