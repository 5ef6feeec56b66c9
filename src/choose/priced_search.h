// PricedSearch: covers that are cheapest where errors have a price.
//
// That a cover's squared errors add up to no more than a budget is one constraint on the search.
// Its dual is a price, in seconds for a squared error, that every lowered variant pays: at price 0
// the cheapest cover is the fastest of all, at a high one that of float32 alone. The dual is found
// by cutting planes. Of two covers, one beyond the budget and one within it, each is a line over
// the price; a search at the price where they meet finds a cover that costs less there and takes
// the place of one of them, or none, and then that price is the dual.
//
//   PricedSearch search(candidates, limit, find);
//   const PricedCover cover = TRY(search.within(estimate));
#pragma once

#include <map>

#include "choose/error_amplification.h"

namespace collage {

struct Price {
  double seconds = 0;  // for a squared error of one
  // One price gives the cover whose saving an error is best worth; a cheaper one may lower so much
  // more that it is beyond the budget, and nothing in between is ever the best. Scattered prices,
  // other ones in each of so many ways, give covers that use what is left. 0: not scattered.
  int scatter = 0;
};

struct PricedCover {
  NamedCover cover;    // what it is predicted to take without the price
  Price price;         // at which it is the cheapest
  double charged = 0;  // seconds at price 1: its squared errors as they are weighted
};

class PricedSearch {
 public:
  // Kernels that err by more than `limit` are left out, but at price 0. `find` must outlive this.
  PricedSearch(std::vector<CostedCandidate> candidates, double limit, const FindCovers& find);

  const std::vector<CostedCandidate>& candidates() const { return candidates_; }

  // The covers that `find` gives at a price, by what they are predicted to take without it.
  Result<std::vector<NamedCover>> covers(const Price& price) const;
  Result<PricedCover> cheapest(const Price& price) const;

  // Of the covers that are cheapest at some price, the fastest that is estimated to err by no more
  // than that.
  Result<PricedCover> within(double estimate, int scatter = 0);

 private:
  double charge(const CostedCandidate& candidate, double error, const Price& price) const;
  PricedCover charged(NamedCover cover, const Price& price) const;
  std::vector<CostedCandidate> priced(const Price& price) const;

  std::vector<CostedCandidate> candidates_;
  const double limit_;
  const FindCovers& find_;
  size_t last_ = 1;  // node of any candidate
  // By scatter: the covers found by within(), by rising price, from the least to an infinite one.
  std::map<int, std::vector<PricedCover>> known_;
};

}  // namespace collage
