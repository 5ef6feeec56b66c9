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
//   Vertical: one after the other, if a predicate accepts the pair: a convolution and the depthwise
//   one that follows, two products in a row.
//
//     conv -> relu -> depthwise     ->     [conv -> relu -> depthwise]
//
// Both return the joined candidates alone; a union with the inner rule keeps the parts. For each
// anchor only its smallest and its largest candidate are joined, or one alone, so results stay in
// proportion to anchors.
#pragma once

#include <functional>

#include "partition/rules/rule.h"

namespace collage {

// Returns whether an anchor may share a kernel with the one that follows it (`b`), or with a
// sibling.
using AnchorPair = std::function<bool(const CallNode& a, const CallNode& b)>;

class HorizontalPartitionRule : public PartitionRule {
 public:
  struct Options {
    size_t max_siblings = 8;  // further ones stay alone; those joined are marked as truncated
    // Which anchors are siblings, beside being calls of one operator with one first argument (or
    // the one of that number: one weight, say). An equivalence; null: all are.
    AnchorPair accepts = nullptr;
    size_t argument = 0;
    // True: one candidate for all siblings, each with the largest of its own that reads nothing
    // else than what they share. False: all of them and each with the next become candidates, the
    // smallest of each and the largest.
    bool all_or_none = false;
  };

  HorizontalPartitionRule(std::string name, PartitionRulePtr rule)
      : HorizontalPartitionRule(std::move(name), std::move(rule), Options{}) {}
  HorizontalPartitionRule(std::string name, PartitionRulePtr rule, Options options)
      : PartitionRule(std::move(name)), rule_(std::move(rule)), options_(std::move(options)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  struct Siblings {
    std::vector<PostDfsIndex> anchors;  // in ascending order
    bool truncated = false;
  };
  std::vector<Siblings> siblings_among(const DataflowGraph& graph,
                                       const std::vector<PostDfsIndex>& anchors) const;

  PartitionRulePtr rule_;
  Options options_;
};

// Accepts a convolution before one with groups, and products before products.
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
