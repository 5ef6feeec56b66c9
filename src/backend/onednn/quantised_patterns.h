// What the pattern table knows of products of integers.
#pragma once

#include "partition/rules/anchor_epilogue.h"

namespace collage::onednn {

// A product of integers that oneDNN computes.
bool is_quantised_anchor(const Match& match);
// A conversion between float32 and integers of 8 bits with one scale and zero point.
bool is_byte_conversion(const Match& match);
// Such a conversion to integers after a product of integers, or back from them.
bool continues_quantised(const EpilogueStep& step);

// Beside each candidate of a rule whose product of integers has tensors added to it: the same with
// the qnn.dequantize calls of these tensors, where nothing else reads what they give.
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
