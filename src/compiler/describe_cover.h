// What the report says of the graph that was partitioned and of the covers that were found: pure
// data, for tables, explanations and the HTML page.
#pragma once

#include "choose/cover_search.h"
#include "compiler/compile.h"

namespace collage {

// Nodes, the candidates that were considered, and who was refused.
void report_graph(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                  CompileReport& report);
// A cover that was not lowered: its kernels are named as lowering would name them.
ReportedPlan describe_cover(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const NamedCover& cover);
// The cover that was lowered: kernels, conversions (their costs left open), edges and arena.
void report_chosen(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                   const NamedCover& cover, const LoweredPlan& lowered, CompileReport& report);
// `report.covers` says what each of the covers is predicted to take.
void report_single_backends(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const std::vector<NamedCover>& covers, CompileReport& report);

}  // namespace collage
