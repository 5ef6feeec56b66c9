#include "compiler/stage_dump.h"

#include <map>

#include "measure/task.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

json to_json(const IndexSet& nodes) {
  json list = json::array();
  nodes.for_each([&](size_t index) { list.push_back(index); });
  return list;
}

json to_json(const SubGraph& sub_graph) {
  json result = {{"nodes", to_json(sub_graph.inside())},
                 {"kind", static_cast<int>(sub_graph.kind())}};
  if (!sub_graph.label().empty()) result["label"] = sub_graph.label();
  if (!sub_graph.required().empty()) result["required"] = to_json(sub_graph.required());
  for (const SubGraph::Nested& nested : sub_graph.nested())
    result["nested"].push_back(
        {{"label", nested.label}, {"sub_graph", to_json(*nested.sub_graph)}});
  return result;
}

json to_json(const CandidatePartition& candidate) {
  json result = {{"target", candidate.spec->target.to_string()},
                 {"rule", candidate.rule_name},
                 {"sub_graph", to_json(candidate.sub_graph)}};
  if (candidate.truncated) result["truncated"] = true;
  return result;
}

json to_json(const TensorRef& tensor) { return {{"node", tensor.node}, {"leaf", tensor.leaf}}; }

// Costs that candidates share are written once.
json to_json(const std::vector<CostedCandidate>& candidates) {
  std::map<const TargetCosts*, size_t> numbers;
  json result = {{"candidates", json::array()}, {"costs", json::array()}};
  for (const CostedCandidate& candidate : candidates) {
    json entry = to_json(candidate.partition);
    if (candidate.costs != nullptr) {
      const auto [it, is_new] = numbers.try_emplace(candidate.costs.get(), numbers.size());
      if (is_new) result["costs"].push_back(collage::to_json(*candidate.costs));
      entry["costs"] = it->second;
    }
    result["candidates"].push_back(std::move(entry));
  }
  return result;
}

json to_json(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  json result = {{"name", cover.name},
                 {"origin", cover.origin},
                 {"single_backend", cover.single_backend},
                 {"mostly_one", cover.mostly_one},
                 {"predicted_seconds", cover.seconds},
                 {"plain_seconds", cover.plain_seconds},
                 {"switches", cover.switches},
                 {"overlap_seconds", cover.overlap_seconds},
                 {"kernels", json::array()},
                 {"conversions", json::array()}};
  for (const Cover::Kernel& kernel : cover.kernels)
    result["kernels"].push_back({{"candidate", kernel.candidate},
                                 {"variant", kernel.variant},
                                 {"name", row_of(kernel, candidates).variant.to_string()},
                                 {"seconds", kernel.seconds}});
  for (const ChosenConversion& conversion : cover.conversions)
    result["conversions"].push_back({{"tensor", to_json(conversion.tensor)},
                                     {"from", collage::to_json(conversion.from)},
                                     {"to", collage::to_json(conversion.to)},
                                     {"seconds", conversion.seconds},
                                     {"before", conversion.before}});
  return result;
}

}  // namespace

json to_json(const Candidates& candidates) {
  json result = {{"targets", json::array()},
                 {"compatible", candidates.compatible},
                 {"candidates", json::array()}};
  for (const PartitionSpecPtr& spec : candidates.specs)
    result["targets"].push_back(spec->target.to_string());
  for (const CandidatePartition& candidate : candidates.found)
    result["candidates"].push_back(to_json(candidate));
  return result;
}

json to_json(const ModelCosts& costs) {
  json result = to_json(costs.candidates);
  result["pruned"] = costs.pruned;
  result["functions"] = costs.functions;
  return result;
}

json to_json(const CoverSearch& covers) {
  json result = to_json(covers.candidates);
  result["lower_bound_seconds"] = covers.lower_bound_seconds;
  result["exact"] = covers.exact;
  result["covers"] = json::array();
  for (const NamedCover& cover : covers.covers)
    result["covers"].push_back(to_json(cover, covers.candidates));
  return result;
}

}  // namespace collage
