// The cover that is expected to be the fastest, found without measuring anything: the search goes
// by costs that are known, by those of shipped rows, and by estimates for the rest
// (cost/cost_store.h). Its kernels are tried, and one that fails is in no cover any more.
//
// Kernels that take long to compile are left out where others do without them.
#pragma once

#include <memory>
#include <string>

#include "choose/light_cover.h"

namespace collage {

class EstimatedSearch {
 public:
  // `of_rows`: only a cover whose kernels were all measured on such a processor.
  explicit EstimatedSearch(LightContext context, bool of_rows = false);
  Result<CoverSearch> find();
  // Whether what it found last is of kernels that were measured on such a processor, here or
  // elsewhere: then no other needs to be timed beside it.
  bool is_of_rows() const { return is_of_rows_; }
  // As LightSearch.
  void refuse(const std::string& kernel, const std::string& reason);

 private:
  Candidates fast_candidates() const;
  Result<CoverSearch> search();
  void refuse_failed(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);

  const LightContext context_;
  MeasuredCosts expected_;
  std::optional<Candidates> candidates_;
  std::optional<ModelCosts> costs_;
  std::unique_ptr<LightSearch> tried_;  // holds the kernels until they are lowered
  const bool wants_rows_;
  bool is_of_rows_ = false;
};

// What stays unless something is faster beyond noise, so that noise changes no plan: what was
// chosen before, else what rows of such a processor make the fastest. An error where there is none.
Result<CoverSearch> standing_cover(const LightContext& context,
                                   const std::optional<PlanRow>& known);
void add_standing(const CoverSearch& standing, CoverSearch& found);

}  // namespace collage
