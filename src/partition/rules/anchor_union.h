// Rules that join candidates of another rule by their anchors, the calls with much work of their
// own.
//
//   Horizontal: siblings, which read one tensor, become one kernel with a result each.
//
//          x                          x
//        /   \                        |
//     conv   conv       ->      [conv | conv]
//      |       |                   |     |
//
//   Vertical: one after the other, where a predicate says that the pair is worth it: a convolution
//   and the depthwise one that follows, two products in a row.
//
//     conv -> relu -> depthwise     ->     [conv -> relu -> depthwise]
//
// Both give the joined candidates alone; a union with the inner rule keeps the parts. For each
// anchor only its smallest and its largest candidate are joined, so results stay in proportion to
// anchors.
#pragma once

#include <functional>

#include "partition/rules/rule.h"

namespace collage {

class HorizontalPartitionRule : public PartitionRule {
 public:
  static constexpr size_t kMaxSiblings = 8;

  // Siblings are calls of one operator with one first argument; all of them (the first
  // `max_siblings`) and each with the next become candidates.
  HorizontalPartitionRule(std::string name, PartitionRulePtr rule,
                          size_t max_siblings = kMaxSiblings)
      : PartitionRule(std::move(name)), rule_(std::move(rule)), max_siblings_(max_siblings) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
  size_t max_siblings_;
};

// Whether an anchor may share a kernel with the one that follows it.
using AnchorPair = std::function<bool(const CallNode& up, const CallNode& down)>;
// A convolution before one with groups, and products before products.
bool is_stacked_pair(const CallNode& up, const CallNode& down);

class VerticalPartitionRule : public PartitionRule {
 public:
  VerticalPartitionRule(std::string name, PartitionRulePtr rule,
                        AnchorPair accepts = is_stacked_pair)
      : PartitionRule(std::move(name)), rule_(std::move(rule)), accepts_(std::move(accepts)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
  AnchorPair accepts_;
};

}  // namespace collage
