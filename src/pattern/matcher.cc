#include "pattern/matcher.h"

#include <algorithm>
#include <unordered_set>

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
      case PatternKind::kAlternative:
        return std::any_of(node.args.begin(), node.args.end(),
                           [&](const DFPattern& arg) { return match_node(arg, expr, next); });
      case PatternKind::kCondition:
        // After the inner pattern, so that a predicate may rely on it.
        return match_node(node.args[0], expr, [&] { return node.predicate(expr) && next(); });
      case PatternKind::kUsedOnce:
        return (!uses_ || uses_(expr.get()) <= 1) && match_node(node.args[0], expr, next);
    }
    return false;
  }

  bool match_call(const PatternNode& node, const Expr& expr, const Next& next) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) return false;
    if (node.names.empty()
            ? call->op->kind > node.max_kind
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
  std::unordered_map<const PatternNode*, Expr> bindings_;
  std::vector<Expr> inside_;
};

}  // namespace

const CallNode* Match::call(std::string_view op_name) const {
  for (const Expr& part : inside)
    if (const CallNode* found = as_op(part, op_name)) return found;
  return nullptr;
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
