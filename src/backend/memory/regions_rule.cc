#include "backend/memory/regions_rule.h"

#include <algorithm>
#include <set>

#include "backend/memory/regions.h"
#include "ir/op.h"

namespace collage::memory {
namespace {

/// A tensor, by the call that makes it and which of its results it is.
using Made = std::pair<PostDfsIndex, int64_t>;

class RegionsPartitionRule : public PartitionRule {
 public:
  using PartitionRule::PartitionRule;

  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    std::vector<CandidatePartition> result;
    std::set<Made> placed;
    for (const DataflowGraph::Node& node : graph.nodes()) {
      const auto* call = as<CallNode>(node.expr);
      if (call == nullptr || call->op == nullptr) continue;
      const Result<Regions> regions = read_regions(*call);
      if (!regions) continue;
      if (regions->part == InPlace::Part::kInput && !claim(graph, *call, placed)) continue;
      SubGraph sub_graph =
          SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({node.index})), call->op->name);
      if (sub_graph.is_valid(graph, {})) result.push_back({name(), std::move(sub_graph), spec});
    }
    return result;
  }

 private:
  /// What makes the tensor, seen through views; none where it is not made or lies in another.
  static std::optional<Made> maker(const DataflowGraph& graph, Expr expr) {
    int64_t leaf = 0;
    for (;;) {
      const PostDfsIndex index = graph.index_of(expr);
      if (graph.node(index).is_external) return std::nullopt;
      switch (node_role(expr)) {
        case NodeRole::kView:
          expr = as<CallNode>(expr)->args[0];
          continue;
        case NodeRole::kProjection: {
          const auto* item = as<TupleGetItemNode>(expr);
          leaf = item->index;
          expr = item->tuple;
          continue;
        }
        case NodeRole::kKernel: {
          const auto* call = as<CallNode>(expr);
          if (call->op != nullptr &&
              (call->op->name == "split" || call->op->name == "strided_slice"))
            return std::nullopt;
          return Made{index, leaf};
        }
        default:
          return std::nullopt;
      }
    }
  }

  static bool claim(const DataflowGraph& graph, const CallNode& join, std::set<Made>& placed) {
    const auto* fields = as<TupleNode>(join.args[0]);
    if (fields == nullptr) return false;
    std::set<Made> made;
    for (const Expr& field : fields->fields) {
      const std::optional<Made> by = maker(graph, field);
      if (!by || placed.contains(*by) || !made.insert(*by).second) return false;
    }
    placed.merge(made);
    return true;
  }
};

}  // namespace

PartitionRulePtr make_regions_rule() { return std::make_shared<RegionsPartitionRule>("memory"); }

}  // namespace collage::memory
