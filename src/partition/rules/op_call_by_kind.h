// OpCallByKindPartitionRule: a candidate for every call of an operator whose fusion kind is at most
// `max_kind`, for generic fusion.
#pragma once

#include "partition/fusion_kind.h"
#include "partition/rules/op_predicate.h"

namespace collage {

class OpCallByKindPartitionRule : public OpPredicatePartitionRule {
 public:
  explicit OpCallByKindPartitionRule(std::string name = "op_by_kind",
                                     FusionKind max_kind = FusionKind::kAnchor)
      : OpPredicatePartitionRule(std::move(name), [max_kind](const CallNode& call) {
          return fusion_kind(call) <= max_kind;
        }) {}
};

}  // namespace collage
