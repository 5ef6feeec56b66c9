// Rules tried on tiny graphs: what they find, by the names of its nodes.
#pragma once

#include <gmock/gmock.h>

#include "partition/gather.h"
#include "partition/rules/op_predicate.h"
#include "partition/tiny_graph.h"

namespace collage {

inline std::vector<CandidatePartition> run(const TinyGraph& g, PartitionRulePtr rule) {
  auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"test", std::move(rule), Target{"test", {}, {}}, "test"});
  std::vector<CandidatePartition> result = all_candidates(g.graph(), spec);
  for (const CandidatePartition& candidate : result)
    EXPECT_TRUE(candidate.sub_graph.is_convex(g.graph()));
  return result;
}
inline std::vector<std::string> names(const TinyGraph& g, PartitionRulePtr rule) {
  return g.names_of(run(g, std::move(rule)));
}
inline std::vector<std::string> names_of_truncated(const TinyGraph& g, PartitionRulePtr rule) {
  std::vector<CandidatePartition> found = run(g, std::move(rule));
  std::erase_if(found, [](const CandidatePartition& candidate) { return !candidate.truncated; });
  return g.names_of(found);
}
template <typename Rule, typename... Args>
PartitionRulePtr make(Args&&... args) {
  return std::make_shared<Rule>(std::forward<Args>(args)...);
}

inline PartitionRulePtr any_op() {
  return make<OpPredicatePartitionRule>("any", [](const CallNode&) { return true; });
}
inline PartitionRulePtr ops(std::vector<std::string> allowed) {
  return make<OpPredicatePartitionRule>("some", [allowed](const CallNode& call) {
    return std::find(allowed.begin(), allowed.end(), call.op->name) != allowed.end();
  });
}

inline constexpr const char* kConvChain =
    "x; y; a = conv(x, c1); b = add(a, y); d = relu(b); e = sort(d); return e";

inline PartitionSpecPtr spec_of(std::string name, PartitionRulePtr rule,
                                std::string device = "cpu") {
  auto spec = std::make_shared<PartitionSpec>();
  spec->name = spec->target.kind = spec->compiler = name;
  spec->target.device.device = std::move(device);
  spec->rule = std::move(rule);
  return spec;
}

}  // namespace collage
