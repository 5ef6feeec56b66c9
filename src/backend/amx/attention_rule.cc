#include "backend/amx/attention_rule.h"

#include <algorithm>
#include <unordered_set>

#include "backend/amx/read_attention.h"
#include "ir/op.h"
#include "partition/candidate_order.h"

namespace collage::amx {
namespace {

class Finder {
 public:
  Finder(const DataflowGraph& graph, std::shared_ptr<const PartitionSpec> spec, std::string rule)
      : graph_(graph), spec_(std::move(spec)), rule_(std::move(rule)) {}

  std::vector<CandidatePartition> run() {
    for (const DataflowGraph::Node& node : graph_.nodes()) {
      const auto* call = as<CallNode>(node.expr);
      if (call == nullptr || !check_attention(*call).ok()) continue;
      IndexSet inside({node.index});
      add(inside, node);
      for (const bool splits : {false, true}) {
        grow(inside, *call, splits);
        add(without_boundary_views(inside), node);
      }
    }
    sort_by_last_node(found_);
    return std::move(found_);
  }

 private:
  void add(IndexSet inside, const DataflowGraph::Node& attention) {
    add(inside);
    if (attention.is_external || attention.outputs.size() != 1) return;
    const auto* user = as<CallNode>(graph_.node(attention.outputs[0]).expr);
    if (user == nullptr || !moves_rows(*user)) return;
    inside.insert(attention.outputs[0]);
    add(inside);
  }

  void add(const IndexSet& inside) {
    SubGraph sub_graph = SubGraph::of(graph_, inside, "amx.attention");
    if (sub_graph.is_valid(graph_, {}) && seen_.insert(inside).second)
      found_.push_back({rule_, std::move(sub_graph), spec_});
  }

  /// Takes producers all of whose users are inside, while the operands can still be read.
  void grow(IndexSet& inside, const CallNode& attention, bool splits) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i : inside.elements())
        for (PostDfsIndex producer : graph_.node(i).inputs) {
          if (inside.contains(producer)) continue;
          IndexSet more = inside;
          if (!take(more, producer, splits) || !reads_operands(attention, [&](const Expr& expr) {
                return !more.contains(graph_.index_of(expr));
              }))
            continue;
          inside = std::move(more);
          changed = true;
        }
    }
  }

  /// A part of a split brings the split, with its other parts.
  bool take(IndexSet& inside, PostDfsIndex producer, bool splits) const {
    const DataflowGraph::Node& node = graph_.node(producer);
    if (node.expr->kind() == ExprKind::kConstant || node.expr->kind() == ExprKind::kVar ||
        !used_inside(node, inside))
      return false;
    inside.insert(producer);
    const auto* part = as<TupleGetItemNode>(node.expr);
    if (part == nullptr) return true;
    if (!splits || as_op(part->tuple, "split") == nullptr) return false;
    const DataflowGraph::Node& split = graph_.node(graph_.index_of(part->tuple));
    for (PostDfsIndex other : split.outputs) {
      if (!used_inside(graph_.node(other), inside)) return false;
      inside.insert(other);
    }
    if (!used_inside(split, inside)) return false;
    inside.insert(split.index);
    return true;
  }

  static bool used_inside(const DataflowGraph::Node& node, const IndexSet& inside) {
    return !node.is_external &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](PostDfsIndex user) { return inside.contains(user); });
  }

  /// The host passes views for nothing.
  IndexSet without_boundary_views(IndexSet inside) const {
    for (size_t i : inside.elements()) {  // producers come first
      const auto& inputs = graph_.node(i).inputs;
      if (node_role(graph_, i) == NodeRole::kView &&
          std::none_of(inputs.begin(), inputs.end(),
                       [&](PostDfsIndex p) { return inside.contains(p); }))
        inside.erase(i);
    }
    return inside;
  }

  const DataflowGraph& graph_;
  std::shared_ptr<const PartitionSpec> spec_;
  std::string rule_;
  std::unordered_set<IndexSet, IndexSetHash> seen_;
  std::vector<CandidatePartition> found_;
};

class AttentionRule : public PartitionRule {
 public:
  AttentionRule() : PartitionRule("amx.attention") {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    return Finder(graph, spec, name()).run();
  }
};

}  // namespace

PartitionRulePtr make_attention_rule() { return std::make_shared<AttentionRule>(); }

}  // namespace collage::amx
