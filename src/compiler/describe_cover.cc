#include "compiler/describe_cover.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/log.h"
#include "base/name_supply.h"
#include "ir/visitor.h"
#include "lower/memory_planner.h"
#include "partition/stated_kernels.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

// Candidates by the nodes they hold.
using Rivals = std::unordered_map<IndexSet, std::vector<size_t>, IndexSetHash>;

Rivals rivals_of(const std::vector<CostedCandidate>& candidates) {
  Rivals rivals;
  for (size_t c = 0; c < candidates.size(); ++c)
    rivals[candidates[c].partition.sub_graph.inside()].push_back(c);
  return rivals;
}

std::string target_name(const CostedCandidate& candidate) {
  return candidate.costs != nullptr ? candidate.costs->target
                                    : candidate.partition.spec->target.to_string();
}

// The same nodes on other targets and as other variants.
std::vector<Alternative> alternatives_of(const Cover::Kernel& chosen, const Rivals& rivals,
                                         const std::vector<CostedCandidate>& candidates) {
  std::vector<Alternative> result;
  for (size_t c : rivals.at(candidates[chosen.candidate].partition.sub_graph.inside())) {
    const CostedCandidate& candidate = candidates[c];
    if (candidate.costs == nullptr) continue;
    if (!candidate.costs->refusal.empty()) {
      result.push_back({candidate.costs->target, "",
                        Invalid{candidate.costs->refusal, candidate.costs->failure}});
      continue;
    }
    for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
      if (c == chosen.candidate && v == chosen.variant) continue;
      const MeasuredVariant& row = candidate.costs->variants[v];
      result.push_back({candidate.costs->target, row.variant.to_string(), row.cost});
    }
  }
  return result;
}

ReportedPlan::Kernel describe_kernel(const DataflowGraph& graph, const Cover::Kernel& chosen,
                                     const Rivals& rivals,
                                     const std::vector<CostedCandidate>& candidates) {
  const CostedCandidate& candidate = candidates[chosen.candidate];
  const MeasuredVariant& row = row_of(chosen, candidates);
  ReportedPlan::Kernel kernel;
  kernel.target = target_name(candidate);
  kernel.variant = row.variant;
  kernel.cost = row.cost;
  kernel.function = candidate.function;
  kernel.predicted_seconds = chosen.seconds;
  kernel.nodes = candidate.partition.sub_graph.inside().elements();
  const auto add_ops = [&](const Expr& expr, PostDfsIndex index) {
    const auto* call = as<CallNode>(expr);
    if (call != nullptr && call->op != nullptr)
      kernel.ops.push_back({tensor_program::name_of_call(*call), call->origin(), index});
  };
  for (PostDfsIndex index : kernel.nodes) {
    const Expr& expr = graph.node(index).expr;
    add_ops(expr, index);
    if (called_primitive(expr) != nullptr)
      for (const Expr& inside : post_order(candidate.function->body)) add_ops(inside, index);
  }
  for (const Expr& param : candidate.function->params)
    kernel.inputs.push_back(param->tensor_type());
  kernel.outputs = candidate.function->result_type().leaves();
  kernel.flops = function_flops(candidate.function);
  kernel.bytes = function_bytes(candidate.function);
  kernel.alternatives = alternatives_of(chosen, rivals, candidates);
  return kernel;
}

void report_edges(const Plan& plan, CompileReport& report) {
  std::vector<std::string> writer(plan.buffers.size());
  auto edge = [&](const std::string& to, BufferId id) {
    const Buffer& buffer = plan.buffers[id];
    if (buffer.place != Buffer::Place::kConstant)
      report.edges.push_back({writer[id], to, buffer.type, buffer.encoding});
  };
  for (const Step& step : plan.steps) {
    for (BufferId id : step.inputs) edge(step.name, id);
    for (BufferId id : step.outputs) writer[id] = step.name;
  }
  for (BufferId id = 0; id < plan.buffers.size(); ++id)
    if (plan.buffers[id].place == Buffer::Place::kOutput) edge("", id);
}

void report_arena(const Plan& plan, CompileReport& report) {
  report.arena_bytes = plan.arena_bytes;
  report.device_arenas = plan.device_arenas;
  for (const ArenaSlot& slot : arena_slots(plan)) {
    if (!is_host_memory(slot.device)) continue;
    const Step& step = plan.steps[slot.step];
    report.arena.push_back({step.name, !slot.buffer,
                            slot.buffer ? plan.buffers[*slot.buffer].offset : step.workspace_offset,
                            slot.lifetime.bytes, slot.lifetime.first, slot.lifetime.last});
  }
}

// The cheapest variant that can be used; else the first, or none.
const MeasuredVariant* best_variant(const TargetCosts& costs) {
  const MeasuredVariant* fastest = fastest_variant(costs, [](const auto&) { return true; });
  return fastest != nullptr || costs.variants.empty() ? fastest : &costs.variants[0];
}

}  // namespace

void report_graph(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                  CompileReport& report) {
  for (const DataflowGraph::Node& node : graph.nodes()) {
    ReportedNode reported;
    const auto* call = as<CallNode>(node.expr);
    switch (node.expr->kind()) {
      case ExprKind::kVar:
        reported.op = "input";
        break;
      case ExprKind::kCall:
        reported.op = tensor_program::name_of_call(*call);
        break;
      case ExprKind::kTuple:
        reported.op = "tuple";
        break;
      case ExprKind::kTupleGetItem:
        reported.op = "item";
        break;
      default:
        continue;
    }
    reported.index = node.index;
    const auto* variable = as<VarNode>(node.expr);
    reported.onnx_node = variable != nullptr ? variable->name : node.expr->origin();
    for (PostDfsIndex input : node.inputs)
      if (node_role(graph, input) != NodeRole::kConstant) reported.inputs.push_back(input);
    reported.outputs = node.expr->type().leaves();
    reported.is_result = node.is_external;
    report.nodes.push_back(std::move(reported));
  }
  for (const CostedCandidate& candidate : candidates) {
    if (candidate.costs == nullptr) continue;
    const IndexSet& inside = candidate.partition.sub_graph.inside();
    ReportedCandidate considered{target_name(candidate), "", inside.elements(), Unknown{}};
    if (!candidate.costs->refusal.empty()) {
      considered.cost = Invalid{candidate.costs->refusal, candidate.costs->failure};
      const Expr& last = graph.node(inside.last()).expr;
      report.rejections.push_back(
          {last->origin().empty() ? candidate.partition.sub_graph.ops_label(graph) : last->origin(),
           considered.target, candidate.costs->refusal});
    } else if (const MeasuredVariant* best = best_variant(*candidate.costs)) {
      considered.variant = best->variant.to_string();
      considered.cost = best->cost;
    }
    report.considered.push_back(std::move(considered));
  }
}

ReportedPlan describe_cover(const DataflowGraph& graph,
                            const std::vector<CostedCandidate>& candidates,
                            const NamedCover& cover) {
  ReportedPlan plan;
  plan.name = cover.name;
  plan.origin = cover.origin;
  plan.single_backend = cover.single_backend;
  const Rivals rivals = rivals_of(candidates);
  NameSupply names;
  for (const Cover::Kernel& chosen : cover.kernels) {
    ReportedPlan::Kernel kernel = describe_kernel(graph, chosen, rivals, candidates);
    const CandidatePartition& partition = candidates[chosen.candidate].partition;
    kernel.name = names.fresh(step_name(graph, partition.sub_graph, partition.spec->target));
    plan.kernels.push_back(std::move(kernel));
  }
  for (const ChosenConversion& c : cover.conversions) {
    std::vector<TensorType> leaves = graph.node(c.tensor.node).expr->type().leaves();
    plan.conversions.push_back({names.fresh("convert_" + c.to.layout.to_string()),
                                leaves.at(c.tensor.leaf), c.from, c.to,
                                Measured{c.seconds, c.seconds, c.seconds, 1}, c.tensor, c.seconds});
  }
  return plan;
}

void report_chosen(const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
                   const NamedCover& cover, const LoweredPlan& lowered, CompileReport& report) {
  ReportedPlan plan = describe_cover(graph, candidates, cover);
  report.kernels = std::move(plan.kernels);
  for (size_t k = 0; k < report.kernels.size(); ++k) {
    report.kernels[k].name = lowered.kernel_names[k];
    report.kernels[k].function = lowered.functions[k];
    log::info("{}: {} on {}", report.kernels[k].name, report.kernels[k].variant.to_string(),
              report.kernels[k].target);
  }
  std::map<std::pair<TensorRef, Encoding>, double> reckoned;
  for (const ChosenConversion& c : cover.conversions) reckoned[{c.tensor, c.to}] = c.seconds;
  for (const LoweredConversion& c : lowered.conversions) {
    auto it = reckoned.find({c.tensor, c.to});
    report.conversions.push_back(
        {c.step, c.type, c.from, c.to, Unknown{}, c.tensor, it == reckoned.end() ? 0 : it->second});
    if (it != reckoned.end()) reckoned.erase(it);
  }
  report_edges(*lowered.plan, report);
  report_arena(*lowered.plan, report);
}

void report_covers(const DataflowGraph& graph, const CoverSearch& found, const CoverChoice& choice,
                   CompileReport& report) {
  for (const auto& [origin, searches] : found.counts.of_origin)
    report.variations[origin].searches = searches;
  for (size_t i = 0; i < found.covers.size(); ++i) {
    const NamedCover& cover = found.covers[i];
    ReportedPlan plan;
    if (cover.single_backend) plan = describe_cover(graph, found.candidates, cover);
    static_cast<CoverTiming&>(plan) = choice.timings[i];
    plan.name = cover.name;
    plan.origin = cover.origin;
    plan.single_backend = cover.single_backend;
    plan.chosen = i == choice.index;
    ReportedVariation& variation = report.variations[cover.origin];
    ++variation.covers;
    variation.chosen += plan.chosen;
    report.covers.push_back(std::move(plan));
  }
}

}  // namespace collage
