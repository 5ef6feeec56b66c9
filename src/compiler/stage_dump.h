// The values between a compilation's stages (decision.h) as JSON, for people and for tests that run
// one stage alone. With COLLAGE_DUMP=dir[:regex] a compilation writes each as
// dir/stage_NN_name.json, in the order in which they arose: candidates, costs, covers, choice,
// plan; costs and covers once more each time that costs were measured again. Where no search is
// needed (light_cover.h) there are neither. The plan is written as text too (plan_text.h).
//
// A new stage has its to_json() here and a call `context.dump("name", value)` where its value
// arises (decision.cc, compile.cc); tests/compiler/stages_test.cc lists the names.
//
// Nodes are numbered as in the graph of @main, which stage_00_graph.relay is the text of.
#pragma once

#include <nlohmann/json.hpp>

#include "cover/candidates.h"
#include "cover/costing.h"
#include "cover/cover_search.h"
#include "select/choose_cover.h"

namespace collage {

nlohmann::json to_json(const Candidates& candidates);
nlohmann::json to_json(const ModelCosts& costs);
// Kernels by their candidates' numbers; the candidates are those of the costs, with what was asked
// for on the way.
nlohmann::json to_json(const CoverSearch& covers);
nlohmann::json to_json(const ChosenCover& choice);
nlohmann::json to_json(const Plan& plan);

// The other way round, of a stage that begins where a dump ends. Errors name what does not fit the
// graph or the specs.
Result<std::vector<CandidatePartition>> candidates_from_json(
    const nlohmann::json& json, const DataflowGraph& graph,
    const std::vector<PartitionSpecPtr>& specs);
Result<ModelCosts> costs_from_json(const nlohmann::json& json, const DataflowGraph& graph,
                                   const std::vector<PartitionSpecPtr>& specs);
Result<CoverSearch> covers_from_json(const nlohmann::json& json, const DataflowGraph& graph,
                                     const std::vector<PartitionSpecPtr>& specs);

}  // namespace collage
