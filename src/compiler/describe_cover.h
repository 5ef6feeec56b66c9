// Describes the partitioned graph and the covers that were found, for the report: pure data for
// tables, explanations and the HTML page.
#pragma once

#include "choose/cover_search.h"
#include "compiler/compile.h"

namespace collage {

// Reports nodes, the candidates that were considered, and refusals.
void report_graph(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                  CompileReport& report);
// Describes a cover that was not lowered: its kernels get the names that lowering would give.
ReportedPlan describe_cover(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const NamedCover& cover);
// Reports the lowered cover: kernels, conversions (their costs left open), edges and arena.
void report_chosen(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                   const NamedCover& cover, const LoweredPlan& lowered, CompileReport& report);
// `report.covers` has the predicted seconds of each cover.
void report_single_backends(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const std::vector<NamedCover>& covers, CompileReport& report);

}  // namespace collage
