// Predicates of the pattern table about products of integers.
#pragma once

#include "partition/rules/anchor_epilogue.h"

namespace collage::onednn {

// Returns whether the match has a product of integers that oneDNN computes.
bool is_quantised_anchor(const Match& match);
// Returns whether it converts between float32 and integers of 8 bits with one scale and zero point.
bool is_byte_conversion(const Match& match);
// Returns whether it does so to integers after a product of integers, or back from them.
bool continues_quantised(const EpilogueStep& step);

// For each candidate of a rule whose product of integers has tensors added to it, adds the same
// with the qnn.dequantize calls of these tensors, if nothing else reads their results.
class WithDequantisedPartitionRule : public PartitionRule {
 public:
  explicit WithDequantisedPartitionRule(PartitionRulePtr rule)
      : PartitionRule(rule->name()), rule_(std::move(rule)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
};

}  // namespace collage::onednn
