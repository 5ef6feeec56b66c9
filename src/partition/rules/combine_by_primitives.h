// CombineByPrimitivesPartitionRule: grows the candidates of another rule by joining neighbours, if
// a row of a table allows the kinds to meet. Every combination within the limits is a candidate,
// those of the inner rule included; the search chooses.
//
// A candidate grows
//   downwards  from an exit to the nearest node that all paths from there go through, with
//              everything in between (so a diamond is closed in one step);
//   upwards    over the one producer of one of its inputs.
// No candidate has more exits than one of the two that it was joined from: a base of one exit grows
// into candidates of one exit, siblings of two results into candidates of two at most.
// On the way it passes views, tuples and projections. Growth is by neighbour lists, one base
// candidate at a time, so the work is about linear in the number of results, which the limits keep
// to a small multiple of the number of nodes. Candidates that limits stopped are marked as
// truncated.
#pragma once

#include <optional>

#include "partition/rules/rule.h"

namespace collage {

// A sub-graph of kind up_min..up_max may be joined with a following one of kind down_min..down_max.
struct KindJoin {
  std::string name;
  FusionKind up_min, up_max, down_min, down_max;
};
std::vector<KindJoin> fuse_ops_joins();  // Relay's FuseOps, plus elementwise after reductions
std::vector<KindJoin> any_joins();       // anything with anything

struct CombineConfig {
  std::vector<KindJoin> joins = fuse_ops_joins();
  size_t max_depth = 4;       // kernel calls on a path; 0: no limit
  size_t max_call_depth = 0;  // the same, views counted; 0: no limit
  size_t max_ops = 8;         // kernel calls in all
  size_t max_per_exit = 16;   // candidates with one exit node, smaller ones first
  // Whether the largest candidates are returned too. They are grown without the limits above up to
  // kMaxRegion operators each, or, with `strict`, within the limits of depth and operators.
  bool maximal = true;
  bool strict = false;
  // Into how many further pieces at most a candidate may leave the largest one that it lies in: of
  // a chain, 1 gives what it begins or ends with. Base candidates and the largest stay. None: any.
  std::optional<size_t> max_splits = std::nullopt;
  static constexpr size_t kMaxRegion = 64;
};

class CombineByPrimitivesPartitionRule : public PartitionRule {
 public:
  CombineByPrimitivesPartitionRule(std::string name, PartitionRulePtr rule,
                                   CombineConfig config = {})
      : PartitionRule(std::move(name)), rule_(std::move(rule)), config_(std::move(config)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
  CombineConfig config_;
};

}  // namespace collage
