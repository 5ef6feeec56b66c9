#include "backend/onednn/patterns.h"

#include <algorithm>

#include "backend/onednn/composite.h"
#include "backend/onednn/quantised_patterns.h"
#include "backend/onednn/steps.h"
#include "ops/quantised.h"
#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/pattern_table.h"

namespace collage::onednn {

namespace {

bool has_elements(const Expr& expr, DType dtype) {
  return expr->type().is_tensor() && expr->tensor_type().dtype == dtype &&
         num_elements(expr->tensor_type().shape) > 0;
}
bool is_float(const Expr& expr) { return has_elements(expr, DType::kFloat32); }

// Every tensor in and out is of that type and not empty.
bool has_tensors(const Match& match, DType dtype) {
  const auto is_one = [&](const Expr& expr) { return has_elements(expr, dtype); };
  const auto* call = as<CallNode>(match.root);
  return is_one(match.root) &&
         std::all_of(call->args.begin(), call->args.end(), [&](const Expr& arg) {
           if (auto* tuple = as<TupleNode>(arg))
             return std::all_of(tuple->fields.begin(), tuple->fields.end(), is_one);
           return is_one(arg);
         });
}
bool float_tensors(const Match& match) { return has_tensors(match, DType::kFloat32); }
bool float_or_byte_tensors(const Match& match) {
  return float_tensors(match) || has_tensors(match, DType::kInt8) ||
         has_tensors(match, DType::kUInt8);
}

// A call that make_step has a word for, over a result no larger than the running value.
bool is_step(const CallNode& call, size_t position, const Expr& other) {
  if (!is_step_operator(call.op->name) || call.args.size() > 2) return false;
  const Expr& running = call.args[position];
  if (call.tensor_type() != running->tensor_type() || !is_float(running)) return false;
  if (call.args.size() == 1) return make_step(call, 0, nullptr).ok();
  if (other == running) return make_step(call, 0, nullptr).ok();
  if (!is_float(other)) return false;
  Operand operand;
  if (auto* constant = as<ConstantNode>(other))
    operand.constant = constant->value;
  else
    operand.param = 0;
  operand.shape = other->tensor_type().shape;
  return make_step(call, position, &operand).ok();
}

bool starts_chain(const Match& match) {
  const auto* call = as<CallNode>(match.root);
  for (size_t i = 0; i < call->args.size(); ++i) {
    const Expr& other = call->args[call->args.size() - 1 - i];
    if (call->args[i]->kind() != ExprKind::kConstant && is_step(*call, i, other)) return true;
  }
  return false;
}

bool continues_chain(const EpilogueStep& step) {
  return continues_quantised(step) || is_step(step.call, step.data_arg, step.other());
}

// Whether the axes that are reduced can be brought into one of the forms oneDNN has code for is for
// the planning to say; here only that the result is a float tensor.
struct Row {
  const char* name;
  std::vector<std::string> operators;
  size_t max_steps = AnchorEpiloguePartitionRule::kMaxSteps;
  MatchPredicate predicate = float_tensors;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"onednn.conv", {"nn.conv1d", "nn.conv2d", "nn.conv3d"}},
      {"onednn.conv_transpose",
       {"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"}},
      {"onednn.product", {"nn.dense", "nn.matmul", "nn.batch_matmul"}},
      {"onednn.max_pool",
       {"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool1d",
        "nn.global_max_pool2d", "nn.global_max_pool3d"},
       AnchorEpiloguePartitionRule::kMaxSteps,
       float_or_byte_tensors},
      {"onednn.pool",
       {"nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool1d",
        "nn.global_avg_pool2d", "nn.global_avg_pool3d"}},
      {"onednn.softmax", {"nn.softmax", "nn.log_softmax"}},
      {"onednn.attention", {"nn.attention"}, 0},
      {"onednn.layer_norm", {"nn.layer_norm"}},
      {"onednn.reduce", {"mean", "sum", "max", "min", "prod"}},
      {"onednn.resize", {"image.resize1d", "image.resize2d", "image.resize3d"}},
      {"onednn.concat",
       {"concatenate"},
       AnchorEpiloguePartitionRule::kMaxSteps,
       float_or_byte_tensors},
      {"onednn.copy", {"transpose", "strided_slice", "nn.pad"}, 0, float_or_byte_tensors},
      {"onednn.quantised",
       {"qnn.conv1d", "qnn.conv2d", "qnn.conv3d", "qnn.dense", "qnn.matmul"},
       AnchorEpiloguePartitionRule::kMaxSteps,
       is_quantised_anchor},
      {"onednn.quantisation", {"qnn.quantize", "qnn.dequantize"}, 0, is_byte_conversion},
  };
  return table;
}

// A convolution or product takes a constant bias for nothing, so a candidate that ends just before
// that bias, or starts at it, could only cost more than the one with both.
class WithBiasPartitionRule : public PartitionRule {
 public:
  explicit WithBiasPartitionRule(PartitionRulePtr rule)
      : PartitionRule(rule->name()), rule_(std::move(rule)) {}

  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    std::vector<CandidatePartition> candidates = rule_->all_candidates(graph, spec);
    std::erase_if(candidates, [&](const CandidatePartition& candidate) {
      const IndexSet& inside = candidate.sub_graph.inside();
      return takes_bias(graph, inside.last()) ||
             (is_bias(graph, inside.first()) &&
              takes_bias(graph, graph.node(inside.first()).inputs[0]));
    });
    return candidates;
  }

 private:
  static bool is_bias(const DataflowGraph& graph, PostDfsIndex index) {
    const auto* bias = as_op(graph.node(index).expr, "nn.bias_add");
    return bias != nullptr && bias->args[1]->kind() == ExprKind::kConstant;
  }
  // The node is an anchor with constant weights whose one user is its bias.
  static bool takes_bias(const DataflowGraph& graph, PostDfsIndex index) {
    const DataflowGraph::Node& node = graph.node(index);
    const auto* call = as<CallNode>(node.expr);
    return call != nullptr && call->op != nullptr && !node.is_external &&
           node.outputs.size() == 1 && is_bias(graph, node.outputs[0]) && call->args.size() >= 2 &&
           call->args[1]->kind() == ExprKind::kConstant &&
           graph.node(node.outputs[0]).inputs[0] == index && has_bias(call->op->name);
  }
  static bool has_bias(std::string_view op) {
    return op.starts_with("nn.conv") || op == "nn.dense" || op == "nn.matmul" ||
           is_quantised_product(op);
  }
  PartitionRulePtr rule_;
};

}  // namespace

PartitionRulePtr pattern_table() {
  std::vector<PartitionRulePtr> rules;
  for (const Row& row : rows())
    rules.push_back(std::make_shared<AnchorEpiloguePartitionRule>(
        row.name, is_op_among(row.operators), row.predicate, continues_chain, row.max_steps));
  rules.push_back(std::make_shared<AnchorEpiloguePartitionRule>(
      "onednn.elementwise", is_op_among(step_operators()), starts_chain, continues_chain));
  return std::make_shared<WithDequantisedPartitionRule>(
      std::make_shared<WithBiasPartitionRule>(make_pattern_rule("onednn", {}, std::move(rules))));
}

}  // namespace collage::onednn
