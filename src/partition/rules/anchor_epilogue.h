// AnchorEpiloguePartitionRule: an anchor pattern followed by a chain of operator calls, each the
// only user of the one before, that a predicate accepts one by one. The anchor alone and every
// prefix of the chain are candidates; if more than `max_steps` calls would be accepted, the longest
// is marked as truncated (0 steps: the anchor alone, by design). It replaces a pattern for each
// length:
//
//   AnchorEpiloguePartitionRule("onednn.conv", is_op("nn.conv2d")(wildcard(), is_constant()), {},
//                               [](const EpilogueStep& step) { return step.call.op->name == …; })
#pragma once

#include <functional>
#include <span>

#include "partition/rules/df_pattern.h"

namespace collage {

struct EpilogueStep {
  const Match& anchor;
  std::span<const CallNode* const> before;  // the chain so far, without the anchor
  const CallNode& call;                     // the call that would follow
  size_t data_arg;                          // which of its arguments is the chain's value
  // Returns its other argument, or null if it has one argument or more than two.
  const Expr& other() const {
    static const Expr kNull;
    return call.args.size() == 2 ? call.args[1 - data_arg] : kNull;
  }
};
using EpiloguePredicate = std::function<bool(const EpilogueStep&)>;

class AnchorEpiloguePartitionRule : public PartitionRule {
 public:
  static constexpr size_t kMaxSteps = 8;

  AnchorEpiloguePartitionRule(std::string name, DFPattern anchor, MatchPredicate anchor_predicate,
                              EpiloguePredicate accepts, size_t max_steps = kMaxSteps)
      : PartitionRule(std::move(name)),
        anchor_(std::move(anchor)),
        anchor_predicate_(std::move(anchor_predicate)),
        accepts_(std::move(accepts)),
        max_steps_(max_steps) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  DFPattern anchor_;
  MatchPredicate anchor_predicate_;
  EpiloguePredicate accepts_;
  size_t max_steps_;
};

}  // namespace collage
