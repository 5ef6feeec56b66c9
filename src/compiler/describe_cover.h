// Describes the partitioned graph and the covers that were found, for the report: pure data for
// tables, explanations and the HTML page.
#pragma once

#include "choose/cover_search.h"
#include "compiler/compile.h"

namespace collage {

// Reports nodes, the candidates that were considered, and refusals.
void report_graph(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                  CompileReport& report);
// Describes a cover that was not lowered, without its timing: its kernels get the names that
// lowering would give.
ReportedPlan describe_cover(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const NamedCover& cover);
// Reports the lowered cover: kernels, conversions (their costs left open), edges and arena.
void report_chosen(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                   const NamedCover& cover, const LoweredPlan& lowered, CompileReport& report);
// Reports all covers with their timings, and what each variation gave.
void report_covers(const DataflowGraph& graph, const CoverSearch& found, const CoverChoice& choice,
                   CompileReport& report);

}  // namespace collage
