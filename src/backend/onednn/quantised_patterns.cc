#include "backend/onednn/quantised_patterns.h"

#include <algorithm>

#include "backend/onednn/quantised.h"
#include "ir/op.h"
#include "ops/quantised.h"

namespace collage::onednn {

namespace {

bool is_byte_tensor(const Expr& expr) {
  const DType dtype = expr->tensor_type().dtype;
  return (dtype == DType::kInt8 || dtype == DType::kUInt8) &&
         num_elements(expr->tensor_type().shape) > 0;
}

bool converts_bytes(const CallNode& call) {
  const bool rounds = call.op->name == "qnn.quantize";
  if (!rounds && call.op->name != "qnn.dequantize") return false;
  const DType dtype = (rounds ? call.tensor_type() : call.args[0]->tensor_type()).dtype;
  return (dtype == DType::kInt8 || dtype == DType::kUInt8) &&
         num_elements(call.tensor_type().shape) > 0 &&
         quantisation_of(call.args[1], call.args[2]).ok();
}

// Whether the node, an argument of the addition, can be a part of its kernel.
bool is_dequantised_operand(const DataflowGraph& graph, PostDfsIndex index, const CallNode& sum) {
  const DataflowGraph::Node& node = graph.node(index);
  const auto* call = as<CallNode>(node.expr);
  return call != nullptr && call->op != nullptr && call->op->name == "qnn.dequantize" &&
         converts_bytes(*call) && node.outputs.size() == 1 && !node.is_external &&
         sum.args[0] != sum.args[1] && call->args[0]->kind() != ExprKind::kConstant;
}

}  // namespace

bool is_quantised_anchor(const Match& match) {
  const auto* call = as<CallNode>(match.root);
  const bool constant = call->args[1]->kind() == ExprKind::kConstant;
  return is_byte_tensor(call->args[0]) && is_byte_tensor(call->args[1]) &&
         call->args[0]->kind() != ExprKind::kConstant &&
         (constant || call->op->name == "qnn.matmul") &&
         num_elements(call->tensor_type().shape) > 0 && can_multiply(*call).ok();
}

bool is_byte_conversion(const Match& match) {
  const auto* call = as<CallNode>(match.root);
  return call->op->name == "qnn.dequantize" && call->args[0]->kind() != ExprKind::kConstant &&
         converts_bytes(*call);
}

bool continues_quantised(const EpilogueStep& step) {
  const auto* anchor = as<CallNode>(step.anchor.root);
  return anchor != nullptr && anchor->op != nullptr && is_quantised_product(anchor->op->name) &&
         step.data_arg == 0 && converts_bytes(step.call);
}

std::vector<CandidatePartition> WithDequantisedPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> candidates = rule_->all_candidates(graph, spec), found;
  for (const CandidatePartition& candidate : candidates) {
    IndexSet inside = candidate.sub_graph.inside();
    bool quantised = false, more = false;
    for (PostDfsIndex index : candidate.sub_graph.inside().elements()) {
      const auto* call = as<CallNode>(graph.node(index).expr);
      if (call == nullptr || call->op == nullptr) continue;
      quantised |= is_quantised_product(call->op->name);
      if (call->op->name != "add") continue;
      for (const Expr& arg : call->args) {
        const PostDfsIndex operand = graph.index_of(arg);
        if (inside.contains(operand) || !is_dequantised_operand(graph, operand, *call)) continue;
        inside.insert(operand);
        more = true;
      }
    }
    if (!quantised || !more) continue;
    SubGraph whole = SubGraph::of(graph, std::move(inside), candidate.sub_graph.label());
    if (whole.is_valid(graph, {}))
      found.push_back({candidate.rule_name, std::move(whole), spec, candidate.truncated});
  }
  candidates.insert(candidates.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
  return candidates;
}

}  // namespace collage::onednn
