// The values between a compilation's stages (decision.h), for people. With COLLAGE_DUMP=dir[:regex]
// a compilation writes each to dir/stage_NN_name, in the order in which they arose: candidates,
// costs and covers as JSON (costs and covers once more each time that costs were measured again;
// where no search is needed, see light_cover.h, there are neither), the partition as a module whose
// kernels are stated, which compiles to the same plan (partition/stated_kernels.h), and the plan as
// text (plan_text.h).
//
// A new stage has its to_json() here and a call `context.dump("name", value)` where its value
// arises (decision.cc, compile.cc); tests/compiler/stages_test.cc lists the names.
//
// Nodes are numbered as in the graph of @main, which stage_00_graph.relay is the text of.
#pragma once

#include <nlohmann/json.hpp>

#include "choose/candidates.h"
#include "choose/costing.h"
#include "choose/cover_search.h"

namespace collage {

nlohmann::json to_json(const Candidates& candidates);
nlohmann::json to_json(const ModelCosts& costs);
// Lists kernels by their candidates' numbers, which are those of the costs, with the intermediate
// results of the search.
nlohmann::json to_json(const CoverSearch& covers);

}  // namespace collage
