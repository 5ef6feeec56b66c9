#include "backend/native/native_rule.h"

#include <algorithm>
#include <unordered_set>

#include "tensor_program/call.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/pattern_kind.h"

namespace collage::native {
namespace {

constexpr size_t kMostCalls = 24;    // of one group, or of an anchor and the chain behind it
constexpr size_t kMostPrologue = 6;  // calls in front of an anchor
constexpr size_t kMostPrograms = 4;  // of several stages, in one group

/// What a call is to a group.
enum class Role {
  kNone,    // cannot be computed
  kAnchor,  // has a template
  kElementwise,
  kInjective,   // moves elements, or samples a few (resizing)
  kWindow,      // pooling, squares of neighbouring channels: several elements each, inlined
  kStatistics,  // needs a stage: reductions, softmax, normalisations
  kProgram,     // a user's program of stages
  kAlone,       // writes where indices say
};

class Finder {
 public:
  Finder(const DataflowGraph& graph, std::shared_ptr<const PartitionSpec> spec, std::string rule,
         CheckCall check)
      : graph_(graph), spec_(std::move(spec)), rule_(std::move(rule)), check_(check) {
    for (const auto& node : graph.nodes()) roles_.push_back(role_of(node.expr));
    for (const auto& node : graph.nodes())
      if (is_any_anchor(node.index)) own_chain(node.index);
  }

  std::vector<CandidatePartition> run() {
    for (const auto& node : graph_.nodes()) {
      const PostDfsIndex i = node.index;
      if (as_op(node.expr, tensor_program::kCallOp) != nullptr) add("program", {IndexSet({i})});
      if (is_any_anchor(i)) add_tails(i);
      if (roles_[i] == Role::kNone || node_role(graph_, i) != NodeRole::kKernel) continue;
      if (is_any_anchor(i) && (roles_[i] == Role::kAnchor || roles_[i] == Role::kProgram))
        add_anchored(i);
      if (roles_[i] != Role::kAnchor) {
        add("call", {with_tuple_arguments(graph_, IndexSet({i}))});
        add("fused", grown_upwards(i));
        add("fused", grown_upwards(i, &owned_));
      }
    }
    add_cut_groups();
    return std::move(found_);
  }

 private:
  /// Nodes, and whether a limit kept more out.
  struct Grown {
    IndexSet inside;
    bool truncated = false;
  };

  Role role_of(const Expr& expr) const {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || !check_(*call).ok()) return Role::kNone;
    if (is_template_anchor(*call)) return Role::kAnchor;
    const std::string_view name = call->op->name;
    if (name == tensor_program::kCallOp) return role_of_program(*call);
    if (call->op->kind == FusionKind::kOpaque) return Role::kAlone;
    const tensor_program::EmitRule* emitted = tensor_program::find_emit_rule(name);
    if (emitted != nullptr && emitted->elementwise) return Role::kElementwise;
    if (name.starts_with("nn.max_pool") || name.starts_with("nn.avg_pool") || name == "nn.lrn")
      return Role::kWindow;
    if (name.starts_with("image.resize"))
      return call->attrs.string("method") == "nearest_neighbor" ? Role::kInjective : Role::kWindow;
    return call->op->kind == FusionKind::kInjective ? Role::kInjective : Role::kStatistics;
  }

  Role role_of_program(const CallNode& call) const {
    if (tensor_program::is_elementwise(call)) return Role::kElementwise;
    const Result<tensor_program::Program> program = tensor_program::program_of_call(call);
    return program.ok() && tensor_program::pattern_kind(*program) != FusionKind::kOpaque
               ? Role::kProgram
               : Role::kNone;
  }

  const Shape& shape_of(PostDfsIndex i) const { return graph_.node(i).expr->tensor_type().shape; }
  bool single_user(PostDfsIndex i) const {
    return !graph_.node(i).is_external && graph_.node(i).outputs.size() == 1;
  }

  /// Whether it is an anchor of some toolchain, or a program like one.
  bool is_any_anchor(PostDfsIndex i) const {
    const auto* call = as<CallNode>(graph_.node(i).expr);
    return call != nullptr && call->op != nullptr && call->type().is_tensor() &&
           (roles_[i] == Role::kAnchor || roles_[i] == Role::kProgram ||
            call->op->kind == FusionKind::kAnchor);
  }

  void add(std::string_view label, const Grown& grown) {
    if (!seen_.insert(grown.inside).second) return;
    SubGraph sub_graph = SubGraph::of(graph_, grown.inside, rule_ + "." + std::string(label));
    if (sub_graph.is_valid(graph_, {}))
      found_.push_back({rule_, std::move(sub_graph), spec_, grown.truncated});
  }

  /// The element-wise calls behind an anchor, each the only user of the one before.
  std::vector<PostDfsIndex> chain_behind(PostDfsIndex anchor, bool* truncated = nullptr) const {
    std::vector<PostDfsIndex> chain;
    for (PostDfsIndex last = anchor; single_user(last); last = chain.back()) {
      const PostDfsIndex user = graph_.node(last).outputs[0];
      if (roles_[user] != Role::kElementwise || !graph_.node(user).expr->type().is_tensor() ||
          shape_of(user) != shape_of(anchor))
        break;
      if (chain.size() + 1 == kMostCalls) {
        if (truncated != nullptr) *truncated = true;
        break;
      }
      chain.push_back(user);
    }
    return chain;
  }

  /// Marks the calls that most likely end in the anchor's kernel: the chain behind it as far as it
  /// reads constants alone (bias, activation).
  void own_chain(PostDfsIndex anchor) {
    PostDfsIndex last = anchor;
    for (PostDfsIndex call : chain_behind(anchor)) {
      if (reads_other_tensor(call, last)) return;
      owned_.insert(call);
      last = call;
    }
  }

  /// Whether it only says what bytes stand for, which costs less than tensors of four times the
  /// size.
  bool reads_bytes(PostDfsIndex i) const {
    return as_op(graph_.node(i).expr, "qnn.dequantize") != nullptr;
  }

  bool reads_other_tensor(PostDfsIndex user, PostDfsIndex chain) const {
    const auto& inputs = graph_.node(user).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](PostDfsIndex i) {
      return i != chain && node_role(graph_, i) != NodeRole::kConstant;
    });
  }

  /// Each end of the chain behind an anchor.
  void add_tails(PostDfsIndex anchor) {
    const std::vector<PostDfsIndex> chain = chain_behind(anchor);
    IndexSet tail;
    for (auto call = chain.rbegin(); call != chain.rend(); ++call) {
      tail.insert(*call);
      add("tail", {tail});
    }
  }

  /// The anchor with each prefix of the chain behind it, also where that reads another tensor of
  /// bytes with what dequantises it; and with its prologue.
  void add_anchored(PostDfsIndex anchor) {
    const IndexSet alone = with_tuple_arguments(graph_, IndexSet({anchor}));
    bool truncated = false;
    const std::vector<PostDfsIndex> chain = chain_behind(anchor, &truncated);
    Grown grown{alone};
    IndexSet with_bytes = alone;
    for (PostDfsIndex call : chain) {
      add("anchor", grown);
      grown.inside.insert(call);
      with_bytes.insert(call);
      for (PostDfsIndex p : graph_.node(call).inputs)
        if (single_user(p) && reads_bytes(p) && roles_[p] == Role::kElementwise)
          with_bytes.insert(p);
      if (with_bytes.size() > grown.inside.size()) add("anchor", {with_bytes, truncated});
    }
    grown.truncated = truncated;
    add("anchor", grown);
    if (as<CallNode>(graph_.node(anchor).expr)->op->name == "nn.attention" && single_user(anchor)) {
      const PostDfsIndex user = graph_.node(anchor).outputs[0];
      const auto* call = as<CallNode>(graph_.node(user).expr);
      if (call != nullptr && call->op != nullptr && call->op->name == "transpose" &&
          roles_[user] != Role::kNone) {
        grown.inside.insert(user);
        add("anchor", grown);
      }
    }
    for (const IndexSet& inside : {alone, grown.inside}) {
      const Grown whole = with_prologue(inside, anchor);
      if (whole.inside.size() > inside.size()) add("prologue", whole);
    }
  }

  /// Grows over producers of the anchor's operands that can be folded into reading them.
  Grown with_prologue(IndexSet inside, PostDfsIndex anchor) const {
    std::vector<PostDfsIndex> work = graph_.node(anchor).inputs;
    size_t added = 0;
    bool truncated = false;
    while (!work.empty()) {
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
      if (folds && added == kMostPrologue) {
        truncated = true;
        continue;
      }
      inside = std::move(more);
      added += folds;
      const auto& inputs = graph_.node(node).inputs;
      work.insert(work.end(), inputs.begin(), inputs.end());
    }
    return {trimmed(std::move(inside), anchor), truncated};
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

  /// The call with producers all of whose users are inside, as far as one kernel computes them
  /// well; none of those in `without`, but itself.
  Grown grown_upwards(PostDfsIndex exit, const IndexSet* without = nullptr) const {
    IndexSet inside = with_tuple_arguments(graph_, IndexSet({exit}));
    size_t calls = 1;
    bool truncated = false;
    bool statistics = roles_[exit] == Role::kStatistics;
    bool moves = roles_[exit] == Role::kInjective;
    const bool window = roles_[exit] == Role::kWindow;
    size_t programs = roles_[exit] == Role::kProgram ? 1 : 0;
    for (bool changed = roles_[exit] != Role::kAlone; changed;) {
      changed = false;
      for (size_t i : inside.elements()) {
        for (PostDfsIndex p : graph_.node(i).inputs) {
          if (inside.contains(p) || graph_.node(p).is_external) continue;
          const auto& users = graph_.node(p).outputs;
          if (!std::all_of(users.begin(), users.end(),
                           [&](PostDfsIndex u) { return inside.contains(u); }))
            continue;
          const NodeRole role = node_role(graph_, p);
          if (role == NodeRole::kTuple || (role == NodeRole::kView && roles_[p] != Role::kNone)) {
            inside.insert(p);
            changed = true;
            continue;
          }
          if (without != nullptr && without->contains(p)) continue;
          if (role != NodeRole::kKernel || !graph_.node(p).expr->type().is_tensor()) continue;
          const Role kind = roles_[p];
          const bool stats = kind == Role::kStatistics, program = kind == Role::kProgram;
          if (kind == Role::kNone || kind == Role::kAnchor || kind == Role::kAlone) continue;
          if (program && (window || programs == kMostPrograms)) continue;
          if (stats && (statistics || moves))
            continue;  // one set of statistics, nothing moved after it
          if (window && kind != Role::kInjective && !reads_bytes(p))
            continue;  // a window computes its argument many times
          if (kind == Role::kWindow && (statistics || moves || window)) continue;
          if (calls == kMostCalls) {
            truncated = true;
            continue;
          }
          inside.insert(p);
          inside = with_tuple_arguments(graph_, std::move(inside));
          statistics = statistics || stats || program;
          programs += program ? 1 : 0;
          moves = moves || kind == Role::kInjective;
          ++calls;
          changed = true;
        }
      }
    }
    return {trimmed(std::move(inside), exit), truncated};
  }

  /// Cuts the groups that no later one takes in. They are disjoint: all users of what is in two of
  /// them are in both, so the one's result is inside the other.
  void add_cut_groups() {
    IndexSet taken;
    for (PostDfsIndex exit = graph_.size(); exit-- > 0;) {
      if (roles_[exit] == Role::kNone || roles_[exit] == Role::kAnchor || taken.contains(exit) ||
          node_role(graph_, exit) != NodeRole::kKernel)
        continue;
      const IndexSet group = grown_upwards(exit).inside;
      taken |= group;
      for (size_t cut : group.elements()) {
        if (cut == exit || node_role(graph_, cut) != NodeRole::kKernel) continue;
        add("cut", part_of(group & graph_.downstream(cut), exit));
        add("cut", part_of(group - grown_upwards(cut).inside, exit));
      }
    }
  }
  Grown part_of(IndexSet inside, PostDfsIndex exit) const {
    return {trimmed(with_tuple_arguments(graph_, std::move(inside)), exit)};
  }

  const DataflowGraph& graph_;
  std::shared_ptr<const PartitionSpec> spec_;
  std::string rule_;
  CheckCall check_;
  std::vector<Role> roles_;
  IndexSet owned_;
  std::unordered_set<IndexSet, IndexSetHash> seen_;
  std::vector<CandidatePartition> found_;
};

class NativeRule : public PartitionRule {
 public:
  NativeRule(const std::string& name, CheckCall check) : PartitionRule(name), check_(check) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    return Finder(graph, spec, name(), check_).run();
  }

 private:
  CheckCall check_;
};

}  // namespace

PartitionRulePtr make_native_rule(const std::string& name, CheckCall check) {
  return std::make_shared<NativeRule>(name, check);
}

}  // namespace collage::native
