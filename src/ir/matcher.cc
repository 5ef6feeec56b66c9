#include "ir/matcher.h"

#include <algorithm>
#include <unordered_set>

#include "ir/fusion_kind.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// Continuation-passing backtracking: `match_node` calls `next` for every way in which the pattern
// fits, with the bindings of that way in place; `next` returns true to stop.
class Matcher {
 public:
  Matcher(const UseCount& uses, const std::function<bool(const Match&)>& visit)
      : uses_(uses), visit_(visit) {}

  void run(const DFPattern& pattern, const Expr& root) {
    match_node(pattern, root, [&] { return report(root); });
  }

 private:
  using Next = std::function<bool()>;

  bool match_node(const DFPattern& pattern, const Expr& expr, const Next& next) {
    const PatternNode* node = pattern.get();
    if (auto it = bindings_.find(node); it != bindings_.end())
      return it->second.get() == expr.get() && next();
    bindings_.emplace(node, expr);
    bool stop = match_unbound(*node, expr, next);
    bindings_.erase(node);
    return stop;
  }

  bool match_unbound(const PatternNode& node, const Expr& expr, const Next& next) {
    switch (node.kind) {
      case PatternKind::kWildcard:
        return next();
      case PatternKind::kVar: {
        const auto* var = as<VarNode>(expr);
        return var != nullptr && (node.names.empty() || node.names[0] == var->name) && next();
      }
      case PatternKind::kConstant:
        return as<ConstantNode>(expr) != nullptr && next();
      case PatternKind::kCall:
        return match_call(node, expr, next);
      case PatternKind::kTuple: {
        const auto* tuple = as<TupleNode>(expr);
        return tuple != nullptr && match_inside(node, expr, tuple->fields, next);
      }
      case PatternKind::kTupleGetItem: {
        const auto* item = as<TupleGetItemNode>(expr);
        return item != nullptr && (node.index < 0 || node.index == item->index) &&
               match_inside(node, expr, {item->tuple}, next);
      }
      case PatternKind::kFunction:
        return match_function(node, expr, next);
      case PatternKind::kDominator:
        return match_dominator(node, expr, next);
      case PatternKind::kAlternative:
        return std::any_of(node.args.begin(), node.args.end(),
                           [&](const DFPattern& arg) { return match_node(arg, expr, next); });
      case PatternKind::kCondition:
        // After the inner pattern, so that a predicate may rely on it.
        return match_node(node.args[0], expr, [&] {
          return (node.relation ? node.relation(expr, bindings_) : node.predicate(expr)) && next();
        });
      case PatternKind::kNamed:
        return match_node(node.args[0], expr, next);
      case PatternKind::kUsedOnce:
        return (!uses_ || uses_(expr.get()) <= 1) && match_node(node.args[0], expr, next);
    }
    return false;
  }

  bool match_call(const PatternNode& node, const Expr& expr, const Next& next) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) return false;
    if (node.calls_function) {
      if (call->op != nullptr) return false;
      std::vector<Expr> parts = {call->callee};
      parts.insert(parts.end(), call->args.begin(), call->args.end());
      return match_inside(node, expr, parts, next);
    }
    if (call->op == nullptr) return false;
    if (node.names.empty()
            ? fusion_kind(*call) > node.max_kind
            : std::find(node.names.begin(), node.names.end(), call->op->name) == node.names.end())
      return false;
    if (match_inside(node, expr, call->args, next)) return true;
    if (node.any_args || call->args.size() != 2 || !is_commutative(call->op->name)) return false;
    return match_inside(node, expr, {call->args[1], call->args[0]}, next);
  }

  // `expr` is a part of the match; its inputs match the node's arguments.
  bool match_inside(const PatternNode& node, const Expr& expr, const std::vector<Expr>& inputs,
                    const Next& next) {
    if (!node.any_args && inputs.size() != node.args.size()) return false;
    inside_.push_back(expr);
    bool stop = node.any_args ? next() : match_args(node, inputs, 0, next);
    inside_.pop_back();
    return stop;
  }

  bool match_args(const PatternNode& node, const std::vector<Expr>& inputs, size_t i,
                  const Next& next) {
    if (i == inputs.size()) return next();
    return match_node(node.args[i], inputs[i],
                      [&, i] { return match_args(node, inputs, i + 1, next); });
  }

  // A body is a graph of its own: nothing in it is a part of this match.
  bool match_function(const PatternNode& node, const Expr& expr, const Next& next) {
    const auto* function = as<FunctionNode>(expr);
    if (function == nullptr) return false;
    if (node.any_args) return next();
    if (function->params.size() + 1 != node.args.size()) return false;
    std::vector<Expr> inner = function->params;
    inner.push_back(function->body);
    std::vector<Expr> parts;
    parts.swap(inside_);
    bool stop = match_args(node, inner, 0, [&] {
      parts.swap(inside_);
      bool found = next();
      parts.swap(inside_);
      return found;
    });
    parts.swap(inside_);
    return stop;
  }

  // After the child: every expression that chains of path nodes lead up to may be the parent; it is
  // when no chain misses it.
  bool match_dominator(const PatternNode& node, const Expr& expr, const Next& next) {
    const DFPattern &parent = node.args[0], &path = node.args[1], &child = node.args[2];
    size_t outer = inside_.size();
    return match_node(child, expr, [&] {
      std::unordered_set<const ExprNode*> own;  // of the child
      for (size_t i = outer; i < inside_.size(); ++i) own.insert(inside_[i].get());
      std::vector<Expr> queue, candidates;
      std::unordered_set<const ExprNode*> seen;
      auto reach = [&](const Expr& from) {
        for (const Expr& input : data_inputs(from))
          if (seen.insert(input.get()).second) queue.push_back(input);
      };
      reach(expr);
      for (size_t i = 0; i < queue.size(); ++i) {
        Expr at = queue[i];
        if (own.count(at.get()) != 0) {
          reach(at);
          continue;
        }
        if (fits(parent, at)) candidates.push_back(at);
        if (fits(path, at)) reach(at);
      }
      for (const Expr& candidate : candidates) {
        std::vector<Expr> between;
        if (!leads_to(expr, candidate, path, own, between)) continue;
        size_t before = inside_.size();
        inside_.insert(inside_.end(), between.begin(), between.end());
        bool stop = match_node(parent, candidate, next);
        inside_.resize(before);
        if (stop) return true;
      }
      return false;
    });
  }

  static std::vector<Expr> data_inputs(const Expr& expr) {
    std::vector<Expr> inputs = expr_inputs(expr);
    std::erase_if(inputs, [](const Expr& input) {
      return input->kind() == ExprKind::kConstant || input->kind() == ExprKind::kFunction ||
             input->kind() == ExprKind::kGlobalVar;
    });
    return inputs;
  }

  // Whether the pattern matches by itself, whatever was bound so far.
  bool fits(const DFPattern& pattern, const Expr& expr) const {
    return match(pattern, expr, uses_).has_value();
  }

  // Whether every chain of inputs from `from` ends at `parent`, over path nodes (and the child's
  // own) alone: those in between.
  bool leads_to(const Expr& from, const Expr& parent, const DFPattern& path,
                const std::unordered_set<const ExprNode*>& own, std::vector<Expr>& between) const {
    std::unordered_set<const ExprNode*> seen;
    std::vector<Expr> work = {from};
    while (!work.empty()) {
      Expr at = work.back();
      work.pop_back();
      std::vector<Expr> inputs = data_inputs(at);
      if (inputs.empty()) return false;
      for (const Expr& input : inputs) {
        if (input == parent || !seen.insert(input.get()).second) continue;
        if (own.count(input.get()) == 0) {
          if (!fits(path, input)) return false;
          between.push_back(input);
        }
        work.push_back(input);
      }
    }
    return true;
  }

  bool report(const Expr& root) {
    Match match;
    match.root = root;
    match.bindings = bindings_;
    // A part may be reached twice (a diamond), and users come before inputs here.
    std::unordered_set<const ExprNode*> parts;
    for (const Expr& part : inside_) parts.insert(part.get());
    append_in_order(root, parts, match.inside);
    return !visit_(match);
  }

  // Post-dfs over the parts alone.
  static void append_in_order(const Expr& expr, std::unordered_set<const ExprNode*>& remaining,
                              std::vector<Expr>& order) {
    if (remaining.erase(expr.get()) == 0) return;
    for (const Expr& input : expr_inputs(expr)) append_in_order(input, remaining, order);
    order.push_back(expr);
  }

  const UseCount& uses_;
  const std::function<bool(const Match&)>& visit_;
  Bindings bindings_;
  std::vector<Expr> inside_;
};

}  // namespace

const CallNode* Match::call(std::string_view op_name) const {
  for (const Expr& part : inside)
    if (const CallNode* found = as_op(part, op_name)) return found;
  return nullptr;
}

std::vector<Expr> Match::constants() const {
  std::vector<Expr> result;
  for (const auto& [node, expr] : bindings)
    if (node->kind == PatternKind::kConstant) result.push_back(expr);
  return result;
}

void for_each_match(const DFPattern& pattern, const Expr& root, const UseCount& uses,
                    const std::function<bool(const Match&)>& visit) {
  Matcher(uses, visit).run(pattern, root);
}

std::optional<Match> match(const DFPattern& pattern, const Expr& root, const UseCount& uses) {
  std::optional<Match> result;
  for_each_match(pattern, root, uses, [&](const Match& found) {
    result = found;
    return false;
  });
  return result;
}

}  // namespace collage
