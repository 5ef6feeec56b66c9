#include "backend/native/native_rule.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "backend/native/kernel_group.h"
#include "tensor_program/call.h"
#include "tensor_program/emitter.h"

namespace collage::native {
namespace {

constexpr size_t kMostCalls = 24;  // of one candidate
constexpr size_t kMostPrologue = 6;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// What a call is to a group.
enum class Role {
  kNone,    // cannot be computed
  kAnchor,  // has a template
  kElementwise,
  kInjective,   // moves elements, or samples a few (resizing)
  kWindow,      // pooling: several elements each, inlined
  kStatistics,  // needs a stage: reductions, softmax, normalisations
};

class Finder {
 public:
  Finder(const DataflowGraph& graph, std::shared_ptr<const PartitionSpec> spec, std::string rule)
      : graph_(graph), spec_(std::move(spec)), rule_(std::move(rule)) {
    for (const auto& node : graph.nodes()) roles_.push_back(role_of(node.expr));
    for (const auto& node : graph.nodes()) {
      if (roles_[node.index] == Role::kAnchor) own_chain(node.index);
    }
  }

  std::vector<CandidatePartition> run() {
    for (const auto& node : graph_.nodes()) {
      if (as_op(node.expr, tensor_program::kCallOp) != nullptr)
        add("program", IndexSet({node.index}));
      if (roles_[node.index] == Role::kNone || node_role(graph_, node.index) != NodeRole::kKernel)
        continue;
      const IndexSet alone({node.index});
      if (roles_[node.index] != Role::kAnchor && !owned_.contains(node.index)) {
        add("call", with_tuple_arguments(graph_, alone));
      }
      if (roles_[node.index] == Role::kAnchor) {
        add_anchored(node.index);
      } else if (!owned_.contains(node.index) && ends_group(node.index)) {
        add("fused", grown_upwards(alone, node.index, kMostCalls));
      }
    }
    return std::move(found_);
  }

 private:
  static Role role_of(const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || !check_call(*call).ok()) return Role::kNone;
    if (is_template_anchor(*call)) return Role::kAnchor;
    const std::string_view name = call->op->name;
    if (tensor_program::find_emit_rule(name)->elementwise) return Role::kElementwise;
    if (starts_with(name, "nn.max_pool") || starts_with(name, "nn.avg_pool")) return Role::kWindow;
    if (starts_with(name, "image.resize"))
      return call->attrs.string("method") == "nearest_neighbor" ? Role::kInjective : Role::kWindow;
    return call->op->kind == FusionKind::kInjective ? Role::kInjective : Role::kStatistics;
  }

  const Shape& shape_of(PostDfsIndex i) const { return graph_.node(i).expr->tensor_type().shape; }
  bool single_user(PostDfsIndex i) const {
    return !graph_.node(i).is_external && graph_.node(i).outputs.size() == 1;
  }

  void add(std::string_view label, const IndexSet& inside) {
    if (!seen_.insert(inside.to_string()).second) return;
    SubGraph sub_graph = SubGraph::of(graph_, inside, "native." + std::string(label));
    if (sub_graph.is_valid(graph_, {})) found_.push_back({rule_, std::move(sub_graph), spec_});
  }

  /// Marks the calls that only ever make sense in the anchor's kernel: the chain behind it as far
  /// as it reads constants alone (bias, activation).
  void own_chain(PostDfsIndex anchor) {
    PostDfsIndex last = anchor;
    while (single_user(last)) {
      const PostDfsIndex user = graph_.node(last).outputs[0];
      if (roles_[user] != Role::kElementwise || shape_of(user) != shape_of(anchor)) return;
      if (reads_other_tensor(user, last)) return;
      owned_.insert(user);
      last = user;
    }
  }

  bool reads_other_tensor(PostDfsIndex user, PostDfsIndex chain) const {
    const auto& inputs = graph_.node(user).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](PostDfsIndex i) {
      return i != chain && node_role(graph_, i) != NodeRole::kConstant;
    });
  }

  /// The anchor with the chain of element-wise calls that only it feeds, and with its prologue.
  void add_anchored(PostDfsIndex anchor) {
    IndexSet inside = with_tuple_arguments(graph_, IndexSet({anchor}));
    PostDfsIndex last = anchor;
    size_t calls = 1;
    while (single_user(last) && calls < kMostCalls) {
      const PostDfsIndex user = graph_.node(last).outputs[0];
      if (roles_[user] != Role::kElementwise || !graph_.node(user).expr->type().is_tensor() ||
          shape_of(user) != shape_of(anchor))
        break;
      if (reads_other_tensor(user, last)) add("anchor", inside);
      IndexSet more = inside;
      more.insert(user);
      if (!SubGraph::of(graph_, more, "").is_valid(graph_, {})) break;
      inside = std::move(more);
      last = user;
      ++calls;
    }
    add("anchor", inside);
    if (as<CallNode>(graph_.node(anchor).expr)->op->name == "nn.attention" && single_user(anchor)) {
      const PostDfsIndex user = graph_.node(anchor).outputs[0];
      const auto* call = as<CallNode>(graph_.node(user).expr);
      if (call != nullptr && call->op != nullptr && call->op->name == "transpose" &&
          roles_[user] != Role::kNone) {
        inside.insert(user);
        add("anchor", inside);
      }
    }
    IndexSet whole = with_prologue(inside, anchor);
    if (whole.size() > inside.size()) add("prologue", whole);
  }

  /// Grows over producers of the anchor's operands that can be folded into reading them.
  IndexSet with_prologue(IndexSet inside, PostDfsIndex anchor) const {
    std::vector<PostDfsIndex> work = graph_.node(anchor).inputs;
    size_t added = 0;
    while (!work.empty() && added < kMostPrologue) {
      const PostDfsIndex node = work.back();
      work.pop_back();
      if (inside.contains(node) || !single_user(node)) continue;
      const NodeRole role = node_role(graph_, node);
      const bool passes =
          role == NodeRole::kTuple || (role == NodeRole::kView && roles_[node] != Role::kNone);
      const bool folds = role == NodeRole::kKernel &&
                         (roles_[node] == Role::kElementwise || roles_[node] == Role::kInjective) &&
                         graph_.node(node).expr->type().is_tensor();
      if (!passes && !folds) continue;
      if (roles_[node] == Role::kElementwise && follows_anchor(node)) continue;
      IndexSet more = inside;
      more.insert(node);
      if (!SubGraph::of(graph_, more, "").is_valid(graph_, {})) continue;
      inside = std::move(more);
      added += folds;
      const auto& inputs = graph_.node(node).inputs;
      work.insert(work.end(), inputs.begin(), inputs.end());
    }
    return trimmed(std::move(inside), anchor);
  }

  /// Whether an anchor's own epilogue would take this call.
  bool follows_anchor(PostDfsIndex node) const {
    for (PostDfsIndex p : graph_.node(node).inputs) {
      if (single_user(p) &&
          (roles_[p] == Role::kAnchor || (roles_[p] == Role::kElementwise && follows_anchor(p))))
        return true;
    }
    return false;
  }

  /// Without views and tuples at the boundary: the host passes those for nothing.
  IndexSet trimmed(IndexSet inside, PostDfsIndex keep) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i : inside.elements()) {
        if (i == keep || node_role(graph_, i) == NodeRole::kKernel) continue;
        const auto& inputs = graph_.node(i).inputs;
        const bool feeds_from_inside = std::any_of(
            inputs.begin(), inputs.end(), [&](PostDfsIndex p) { return inside.contains(p); });
        if (feeds_from_inside || node_role(graph_, i) == NodeRole::kTuple) continue;
        inside.erase(i);
        changed = true;
      }
    }
    return inside;
  }

  /// Whether a group without an anchor naturally ends here: nothing that could join it follows.
  bool ends_group(PostDfsIndex i) const {
    if (roles_[i] == Role::kStatistics || !single_user(i)) return true;
    PostDfsIndex user = graph_.node(i).outputs[0];
    while (single_user(user) && (node_role(graph_, user) == NodeRole::kView ||
                                 node_role(graph_, user) == NodeRole::kTuple))
      user = graph_.node(user).outputs[0];
    const Role role = roles_[user];
    return role == Role::kNone || role == Role::kAnchor || role == Role::kWindow ||
           node_role(graph_, user) != NodeRole::kKernel;
  }

  /// Adds producers all of whose users are inside, as far as one kernel computes them well.
  IndexSet grown_upwards(IndexSet inside, PostDfsIndex exit, size_t most) const {
    inside = with_tuple_arguments(graph_, std::move(inside));
    size_t calls = 1;
    bool statistics = roles_[exit] == Role::kStatistics;
    bool moves = roles_[exit] == Role::kInjective;
    const bool window = roles_[exit] == Role::kWindow;
    for (bool changed = true; changed && calls < most;) {
      changed = false;
      for (size_t i : inside.elements()) {
        for (PostDfsIndex p : graph_.node(i).inputs) {
          if (inside.contains(p) || graph_.node(p).is_external || calls >= most) continue;
          const auto& users = graph_.node(p).outputs;
          if (!std::all_of(users.begin(), users.end(),
                           [&](PostDfsIndex u) { return inside.contains(u); }))
            continue;
          const NodeRole role = node_role(graph_, p);
          if (role == NodeRole::kTuple || role == NodeRole::kProjection ||
              (role == NodeRole::kView && roles_[p] != Role::kNone)) {
            if (role == NodeRole::kProjection) continue;
            inside.insert(p);
            changed = true;
            continue;
          }
          if (owned_.contains(p)) continue;
          if (role != NodeRole::kKernel || !graph_.node(p).expr->type().is_tensor()) continue;
          const Role kind = roles_[p];
          const bool stats = kind == Role::kStatistics;
          if (kind == Role::kNone || kind == Role::kAnchor) continue;
          if (stats && (statistics || moves))
            continue;  // one set of statistics, nothing moved after it
          if (window && kind != Role::kInjective)
            continue;  // a window computes its argument many times
          if (kind == Role::kWindow && (statistics || moves || window)) continue;
          IndexSet more = inside;
          more.insert(p);
          more = with_tuple_arguments(graph_, std::move(more));
          inside = std::move(more);
          statistics = statistics || stats;
          moves = moves || kind == Role::kInjective;
          ++calls;
          changed = true;
        }
      }
    }
    return trimmed(std::move(inside), exit);
  }

  const DataflowGraph& graph_;
  std::shared_ptr<const PartitionSpec> spec_;
  std::string rule_;
  std::vector<Role> roles_;
  IndexSet owned_;
  std::set<std::string> seen_;
  std::vector<CandidatePartition> found_;
};

class NativeRule : public PartitionRule {
 public:
  NativeRule() : PartitionRule("native") {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    return Finder(graph, spec, name()).run();
  }
};

}  // namespace

PartitionRulePtr make_native_rule() { return std::make_shared<NativeRule>(); }

}  // namespace collage::native
