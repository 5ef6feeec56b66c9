#include "compiler/stage_dump.h"

#include <map>

#include "base/json_fields.h"
#include "cost/task.h"
#include "ir/visitor.h"
#include "runtime/plan.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr JsonFields::Range kSeconds{-1e9, 1e9};

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

Result<IndexSet> nodes_from_json(const json& list, const DataflowGraph& graph) {
  IndexSet nodes;
  for (const json& entry : list) {
    const json field = {{"node", entry}};
    nodes.insert(static_cast<size_t>(
        TRY(JsonFields(field).integer("node", 0, static_cast<int64_t>(graph.size()) - 1))));
  }
  return nodes;
}

Result<SubGraph> sub_graph_from_json(const json& j, const DataflowGraph& graph) {
  const JsonFields fields(j);
  const auto kind = static_cast<FusionKind>(
      TRY(fields.integer("kind", 0, static_cast<int64_t>(FusionKind::kOpaque))));
  IndexSet required;
  if (fields.has("required"))
    required = TRY(nodes_from_json(*TRY(fields.array("required")), graph));
  std::vector<SubGraph::Nested> nested;
  if (fields.has("nested"))
    for (const json& entry : *TRY(fields.array("nested"))) {
      const JsonFields one(entry);
      nested.push_back({TRY(one.text("label")),
                        std::make_shared<const SubGraph>(
                            TRY(sub_graph_from_json(*TRY(one.object("sub_graph")), graph)))});
    }
  return SubGraph(graph, TRY(nodes_from_json(*TRY(fields.array("nodes")), graph)), kind,
                  TRY(fields.text("label", "")), std::move(nested), std::move(required));
}

Result<CandidatePartition> candidate_from_json(const json& j, const DataflowGraph& graph,
                                               const std::vector<PartitionSpecPtr>& specs) {
  const JsonFields fields(j);
  const std::string target = TRY(fields.text("target"));
  for (const PartitionSpecPtr& spec : specs)
    if (spec->target.to_string() == target)
      return CandidatePartition{TRY(fields.text("rule")),
                                TRY(sub_graph_from_json(*TRY(fields.object("sub_graph")), graph)),
                                spec, fields.has("truncated") && TRY(fields.flag("truncated"))};
  return bad_model("a dump names the target '{}', which is not among the compilation's", target);
}

Result<std::vector<CostedCandidate>> costed_from_json(const json& j, const DataflowGraph& graph,
                                                      const std::vector<PartitionSpecPtr>& specs) {
  const JsonFields fields(j);
  std::vector<std::shared_ptr<const TargetCosts>> costs;
  for (const json& entry : *TRY(fields.array("costs")))
    costs.push_back(std::make_shared<const TargetCosts>(TRY(target_costs_from_json(entry))));
  std::vector<CostedCandidate> candidates;
  for (const json& entry : *TRY(fields.array("candidates"))) {
    CandidatePartition partition = TRY(candidate_from_json(entry, graph, specs));
    Function function = TRY(inline_calls(partition.sub_graph.extract(graph)));
    candidates.push_back({std::move(partition), std::move(function), nullptr});
    const JsonFields one(entry);
    if (one.has("costs"))
      candidates.back().costs = costs.at(static_cast<size_t>(
          TRY(one.integer("costs", 0, static_cast<int64_t>(costs.size()) - 1))));
  }
  return candidates;
}

json to_json(const NamedCover& cover) {
  json result = {{"name", cover.name},
                 {"single_backend", cover.single_backend},
                 {"mostly_one", cover.mostly_one},
                 {"predicted_seconds", cover.predicted_seconds},
                 {"plain_seconds", cover.plain_seconds},
                 {"switches", cover.switches},
                 {"overlap_seconds", cover.overlap_seconds},
                 {"kernels", json::array()},
                 {"conversions", json::array()}};
  for (const CoverKernel& kernel : cover.kernels)
    result["kernels"].push_back({{"candidate", kernel.candidate},
                                 {"variant", kernel.variant},
                                 {"name", kernel.row().variant.to_string()},
                                 {"seconds", kernel.seconds}});
  for (const ChosenConversion& conversion : cover.conversions)
    result["conversions"].push_back({{"tensor", to_json(conversion.tensor)},
                                     {"from", collage::to_json(conversion.from)},
                                     {"to", collage::to_json(conversion.to)},
                                     {"seconds", conversion.seconds},
                                     {"before", conversion.before}});
  return result;
}

constexpr int64_t kMost = int64_t{1} << 40;

Result<NamedCover> cover_from_json(const json& j, const DataflowGraph& graph,
                                   const std::vector<CostedCandidate>& candidates) {
  const JsonFields fields(j);
  NamedCover cover;
  cover.name = TRY(fields.text("name"));
  cover.single_backend = TRY(fields.flag("single_backend"));
  cover.mostly_one = TRY(fields.flag("mostly_one"));
  cover.predicted_seconds = TRY(fields.number("predicted_seconds", kSeconds));
  cover.plain_seconds = TRY(fields.number("plain_seconds", kSeconds));
  cover.switches = static_cast<size_t>(TRY(fields.integer("switches", 0, kMost)));
  cover.overlap_seconds = TRY(fields.number("overlap_seconds", kSeconds));
  for (const json& entry : *TRY(fields.array("kernels"))) {
    const JsonFields one(entry);
    CoverKernel kernel{};
    kernel.candidate = static_cast<size_t>(
        TRY(one.integer("candidate", 0, static_cast<int64_t>(candidates.size()) - 1)));
    kernel.costs = candidates[kernel.candidate].costs;
    if (kernel.costs == nullptr) return bad_model("{}: a kernel without costs", cover.name);
    kernel.variant = static_cast<size_t>(
        TRY(one.integer("variant", 0, static_cast<int64_t>(kernel.costs->variants.size()) - 1)));
    kernel.seconds = TRY(one.number("seconds", kSeconds));
    cover.kernels.push_back(std::move(kernel));
  }
  for (const json& entry : *TRY(fields.array("conversions"))) {
    const JsonFields one(entry);
    const json& tensor = *TRY(one.object("tensor"));
    const JsonFields place(tensor);
    ChosenConversion conversion;
    conversion.tensor.node = static_cast<PostDfsIndex>(
        TRY(place.integer("node", 0, static_cast<int64_t>(graph.size()) - 1)));
    conversion.tensor.leaf = static_cast<size_t>(TRY(place.integer("leaf", 0, kMost)));
    conversion.from = TRY(encoding_from(*TRY(one.object("from"))));
    conversion.to = TRY(encoding_from(*TRY(one.object("to"))));
    conversion.seconds = TRY(one.number("seconds", kSeconds));
    conversion.before = static_cast<size_t>(TRY(one.integer("before", 0, kMost)));
    cover.conversions.push_back(std::move(conversion));
  }
  return cover;
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
  for (const NamedCover& cover : covers.covers) result["covers"].push_back(to_json(cover));
  return result;
}

json to_json(const ChosenCover& choice) {
  json result = {{"chosen", choice.timed.at(choice.index).name}, {"covers", json::array()}};
  for (const TimedCover& timed : choice.timed) {
    json entry = {{"name", timed.name}, {"predicted_seconds", timed.predicted_seconds}};
    if (timed.measured) entry["measured"] = collage::to_json(Cost(*timed.measured));
    if (!timed.failure.empty()) entry["failure"] = timed.failure;
    result["covers"].push_back(std::move(entry));
  }
  return result;
}

json to_json(const Plan& plan) {
  constexpr const char* kPlaces[] = {"input", "output", "constant", "arena", "part"};
  json result = {
      {"arena_bytes", plan.arena_bytes}, {"buffers", json::array()}, {"steps", json::array()}};
  for (const Buffer& buffer : plan.buffers)
    result["buffers"].push_back({{"place", kPlaces[static_cast<size_t>(buffer.place)]},
                                 {"index", buffer.index},
                                 {"offset", buffer.offset},
                                 {"bytes", buffer.bytes},
                                 {"type", buffer.type.to_string()},
                                 {"encoding", collage::to_json(buffer.encoding)}});
  for (const Step& step : plan.steps)
    result["steps"].push_back({{"name", step.name},
                               {"target", step.target},
                               {"inputs", step.inputs},
                               {"outputs", step.outputs},
                               {"workspace_bytes", step.kernel->workspace_bytes()}});
  return result;
}

Result<std::vector<CandidatePartition>> candidates_from_json(
    const json& j, const DataflowGraph& graph, const std::vector<PartitionSpecPtr>& specs) {
  std::vector<CandidatePartition> result;
  for (const json& entry : *TRY(JsonFields(j).array("candidates")))
    result.push_back(TRY(candidate_from_json(entry, graph, specs)));
  return result;
}

Result<ModelCosts> costs_from_json(const json& j, const DataflowGraph& graph,
                                   const std::vector<PartitionSpecPtr>& specs) {
  const JsonFields fields(j);
  ModelCosts result;
  result.candidates = TRY(costed_from_json(j, graph, specs));
  result.pruned = static_cast<size_t>(TRY(fields.integer("pruned", 0, kMost)));
  result.functions = static_cast<size_t>(TRY(fields.integer("functions", 0, kMost)));
  return result;
}

Result<CoverSearch> covers_from_json(const json& j, const DataflowGraph& graph,
                                     const std::vector<PartitionSpecPtr>& specs) {
  const JsonFields fields(j);
  CoverSearch result;
  result.candidates = TRY(costed_from_json(j, graph, specs));
  result.lower_bound_seconds = TRY(fields.number("lower_bound_seconds", kSeconds));
  result.exact = TRY(fields.flag("exact"));
  for (const json& entry : *TRY(fields.array("covers")))
    result.covers.push_back(TRY(cover_from_json(entry, graph, result.candidates)));
  return result;
}

}  // namespace collage
