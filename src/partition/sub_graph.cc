#include "partition/sub_graph.h"

#include <algorithm>

#include "ir/visitor.h"
#include "ir/fusion_kind.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

// `expr` over other inputs of the same types: no type inference.
Expr rebuild(const Expr& expr, const std::vector<Expr>& inputs) {
  switch (expr->kind()) {
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(expr);
      std::vector<Expr> args(inputs.begin(),
                             inputs.begin() + static_cast<ptrdiff_t>(call->args.size()));
      return std::make_shared<CallNode>(call->op, call->callee, std::move(args), call->attrs,
                                        call->type(), call->origin());
    }
    case ExprKind::kTuple:
      return std::make_shared<TupleNode>(inputs, expr->type());
    case ExprKind::kTupleGetItem:
      return std::make_shared<TupleGetItemNode>(inputs[0], as<TupleGetItemNode>(expr)->index);
    default:
      COLLAGE_CHECK(false, "a node of this kind is never inside a sub-graph");
      return expr;
  }
}

// Builds the expression of a sub-graph. A unit is a nested sub-graph or a node in none; units are
// built in dataflow order.
class Extractor {
 public:
  Extractor(const DataflowGraph& graph, const SubGraph& sub_graph, ConstantsInside constants)
      : graph_(graph), sub_graph_(sub_graph), constants_(constants) {}

  Function run(Attrs attrs) {
    std::vector<Expr> params;
    const char* prefix = constants_ == ConstantsInside::kAll ? "p" : "FunctionVar_";
    sub_graph_.parameters(graph_, constants_).for_each([&](PostDfsIndex i) {
      params.push_back(
          make_var(prefix + std::to_string(params.size()), graph_.node(i).expr->type()));
      values_[i] = params.back();
    });
    for (size_t unit : units_in_order()) build(unit);
    std::vector<Expr> results;
    sub_graph_.exit().for_each([&](PostDfsIndex i) { results.push_back(values_.at(i)); });
    COLLAGE_CHECK(!results.empty(), "a sub-graph without an exit: {}",
                  sub_graph_.inside().to_string());
    Expr body = results.size() == 1 ? results[0] : make_tuple(std::move(results));
    return make_function(std::move(params), std::move(body), std::move(attrs));
  }

 private:
  // Unit numbers: nested sub-graphs first, then one for each remaining node.
  std::vector<size_t> units_in_order() {
    for (const SubGraph::Nested& nested : sub_graph_.nested()) {
      nested.sub_graph->inside().for_each([&](PostDfsIndex i) { unit_of_[i] = units_.size(); });
      units_.push_back(DataflowGraph::kNone);
    }
    sub_graph_.inside().for_each([&](PostDfsIndex i) {
      if (unit_of_.emplace(i, units_.size()).second) units_.push_back(i);
    });
    std::vector<std::vector<size_t>> users(units_.size());
    std::vector<size_t> waiting(units_.size(), 0);
    sub_graph_.inside().for_each([&](PostDfsIndex i) {
      for (PostDfsIndex input : graph_.node(i).inputs) {
        auto it = unit_of_.find(input);
        if (it == unit_of_.end() || it->second == unit_of_[i]) continue;
        users[it->second].push_back(unit_of_[i]);
        ++waiting[unit_of_[i]];
      }
    });
    std::vector<size_t> order;
    for (size_t unit = 0; unit < units_.size(); ++unit)
      if (waiting[unit] == 0) order.push_back(unit);
    for (size_t done = 0; done < order.size(); ++done)
      for (size_t user : users[order[done]])
        if (--waiting[user] == 0) order.push_back(user);
    COLLAGE_CHECK(order.size() == units_.size(), "nested sub-graphs depend on one another");
    return order;
  }

  void build(size_t unit) {
    if (units_[unit] != DataflowGraph::kNone) {
      PostDfsIndex index = units_[unit];
      std::vector<Expr> inputs;
      for (PostDfsIndex input : graph_.node(index).inputs) inputs.push_back(value(input));
      values_[index] = rebuild(graph_.node(index).expr, inputs);
      return;
    }
    const SubGraph::Nested& nested = sub_graph_.nested()[unit];
    Function function =
        nested.sub_graph->extract(graph_, {{"Composite", nested.label}}, constants_);
    std::vector<Expr> args;
    nested.sub_graph->parameters(graph_, constants_).for_each([&](PostDfsIndex i) {
      args.push_back(value(i));
    });
    Type type = function->result_type();
    Expr call = std::make_shared<CallNode>(nullptr, function, std::move(args), Attrs{},
                                           std::move(type), "");
    std::vector<size_t> exits = nested.sub_graph->exit().elements();
    for (size_t k = 0; k < exits.size(); ++k)
      values_[exits[k]] = exits.size() == 1
                              ? call
                              : std::make_shared<TupleGetItemNode>(call, static_cast<int64_t>(k));
  }

  Expr value(PostDfsIndex index) const {
    auto it = values_.find(index);
    if (it != values_.end()) return it->second;
    const Expr& expr = graph_.node(index).expr;
    COLLAGE_CHECK(node_role(expr) == NodeRole::kConstant, "node {} is not available inside {}",
                  index, sub_graph_.inside().to_string());
    return expr;
  }

  const DataflowGraph& graph_;
  const SubGraph& sub_graph_;
  const ConstantsInside constants_;
  std::vector<PostDfsIndex> units_;  // a node, or kNone for the nested sub-graph of that number
  std::unordered_map<PostDfsIndex, size_t> unit_of_;
  std::unordered_map<PostDfsIndex, Expr> values_;
};

}  // namespace

SubGraph::SubGraph(const DataflowGraph& graph, IndexSet inside, FusionKind kind, std::string label,
                   std::vector<Nested> nested, IndexSet required)
    : inside_(std::move(inside)),
      required_(std::move(required)),
      kind_(kind),
      label_(std::move(label)),
      nested_(std::move(nested)) {
  find_boundary(graph, inside_);
}

void SubGraph::find_boundary(const DataflowGraph& graph, const IndexSet& nodes) {
  nodes.for_each([&](PostDfsIndex i) {
    const DataflowGraph::Node& node = graph.node(i);
    const NodeRole role = node_role(node.expr);
    COLLAGE_CHECK(role != NodeRole::kConstant && role != NodeRole::kVariable,
                  "node {} may not be inside a sub-graph", i);
    for (PostDfsIndex input : node.inputs)
      if (!inside_.contains(input) && node_role(graph, input) != NodeRole::kConstant) {
        input_.insert(input);
        entry_.insert(i);
      }
    if (node.is_external) exit_.insert(i);
    for (PostDfsIndex output : node.outputs)
      if (!inside_.contains(output)) {
        output_.insert(output);
        exit_.insert(i);
      }
  });
}

SubGraph::Depth SubGraph::depth(const DataflowGraph& graph) const {
  std::unordered_map<PostDfsIndex, Depth> depth;
  Depth most;
  inside_.for_each([&](PostDfsIndex i) {
    Depth& here = depth[i];
    for (PostDfsIndex input : graph.node(i).inputs)
      if (auto before = depth.find(input); before != depth.end()) {
        here.calls = std::max(here.calls, before->second.calls);
        here.kernels = std::max(here.kernels, before->second.kernels);
      }
    const NodeRole role = node_role(graph, i);
    here.calls += role == NodeRole::kKernel || role == NodeRole::kView;
    here.kernels += role == NodeRole::kKernel;
    most.calls = std::max(most.calls, here.calls);
    most.kernels = std::max(most.kernels, here.kernels);
  });
  return most;
}

SubGraph SubGraph::of(const DataflowGraph& graph, IndexSet inside, std::string label) {
  FusionKind kind = FusionKind::kElementwise;
  inside.for_each([&](PostDfsIndex i) {
    if (const auto* call = as<CallNode>(graph.node(i).expr))
      kind = std::max(kind, fusion_kind(*call));
  });
  return SubGraph(graph, std::move(inside), kind, std::move(label));
}

bool SubGraph::is_convex(const DataflowGraph& graph) const {
  // A path that leaves and re-enters goes through a node that is downstream of an exit and upstream
  // of an entry.
  IndexSet below, above;
  exit_.for_each([&](PostDfsIndex i) { below |= graph.downstream(i); });
  below -= inside_;
  entry_.for_each([&](PostDfsIndex i) { above |= graph.upstream(i); });
  return !below.intersects(above);
}

bool SubGraph::is_valid(const DataflowGraph& graph, const SubGraphConfig& config,
                        std::string* why) const {
  auto no = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return false;
  };
  if (inside_.empty()) return no("nothing inside");
  if (exit_.empty()) return no("no exit");
  if (config.max_exits != 0 && exit_.size() > config.max_exits)
    return no(std::to_string(exit_.size()) + " exits, at most " + std::to_string(config.max_exits));
  const Depth depth =
      config.max_depth != 0 || config.max_kernel_depth != 0 ? this->depth(graph) : Depth{};
  if (config.max_depth != 0 && depth.calls > config.max_depth)
    return no("depth " + std::to_string(depth.calls) + ", at most " +
              std::to_string(config.max_depth));
  if (config.max_kernel_depth != 0 && depth.kernels > config.max_kernel_depth)
    return no("depth " + std::to_string(depth.kernels) + " in kernels, at most " +
              std::to_string(config.max_kernel_depth));
  bool tapped = false, tuples = false;
  exit_.for_each([&](PostDfsIndex i) {
    for (PostDfsIndex output : graph.node(i).outputs) tapped |= inside_.contains(output);
    tuples |= node_role(graph, i) == NodeRole::kTuple;
  });
  input_.for_each([&](PostDfsIndex i) { tuples |= !graph.node(i).expr->type().is_tensor(); });
  if (tapped && !config.allow_taps) return no("an exit is also used inside");
  if (tuples) return no("a tuple crosses its boundary");
  // What leaves at the one exit, and only there, cannot come back: it would lead to itself.
  if ((exit_.size() > 1 || tapped) && !is_convex(graph))
    return no("a path leaves it and comes back");
  return true;
}

SubGraph SubGraph::disjoint_union(const DataflowGraph& graph, const SubGraph& other) const {
  COLLAGE_CHECK(!inside_.intersects(other.inside_), "sub-graphs {} and {} overlap",
                inside_.to_string(), other.inside_.to_string());
  // Only what is at the boundary of a part can be at that of the whole.
  SubGraph joined(
      graph, {}, std::max(kind_, other.kind_),
      label_.empty() || other.label_.empty() ? label_ + other.label_ : label_ + "+" + other.label_,
      nested_, required_ | other.required_);
  joined.nested_.insert(joined.nested_.end(), other.nested_.begin(), other.nested_.end());
  joined.inside_ = inside_ | other.inside_;
  joined.find_boundary(graph, entry_ | exit_ | other.entry_ | other.exit_);
  return joined;
}

SubGraph SubGraph::with_required(const IndexSet& constants) const {
  SubGraph result = *this;
  result.required_ |= constants;
  return result;
}

SubGraph SubGraph::labelled(const DataflowGraph& graph, std::string label) const {
  return SubGraph(graph, inside_, kind_, label,
                  {Nested{label, std::make_shared<const SubGraph>(*this)}}, required_);
}

SubGraph SubGraph::substitute(const DataflowGraph& new_graph,
                              const std::unordered_map<PostDfsIndex, PostDfsIndex>& map) const {
  IndexSet inside;
  inside_.for_each([&](PostDfsIndex i) { inside.insert(map.at(i)); });
  std::vector<Nested> nested;
  for (const Nested& n : nested_)
    nested.push_back(
        {n.label, std::make_shared<const SubGraph>(n.sub_graph->substitute(new_graph, map))});
  IndexSet required;
  required_.for_each([&](PostDfsIndex i) {
    if (auto it = map.find(i); it != map.end()) required.insert(it->second);
  });
  return SubGraph(new_graph, std::move(inside), kind_, label_, std::move(nested),
                  std::move(required));
}

IndexSet SubGraph::parameters(const DataflowGraph& graph, ConstantsInside constants) const {
  IndexSet result = input_;
  if (constants == ConstantsInside::kAll) return result;
  inside_.for_each([&](PostDfsIndex i) {
    for (PostDfsIndex input : graph.node(i).inputs)
      if (const auto* constant = as<ConstantNode>(graph.node(input).expr))
        if (constant->value.rank() > 0 && !required_.contains(input)) result.insert(input);
  });
  return result;
}

Function SubGraph::extract(const DataflowGraph& graph, Attrs attrs,
                           ConstantsInside constants) const {
  return Extractor(graph, *this, constants).run(std::move(attrs));
}

std::string call_label(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  const auto function = std::dynamic_pointer_cast<const FunctionNode>(call->callee);
  if (function == nullptr) return tensor_program::name_of_call(*call);
  const AttrValue* label = function->attrs.find("Composite");
  if (label != nullptr && std::holds_alternative<std::string>(*label))
    return std::get<std::string>(*label);
  const Result<Function> flat = inline_calls(function);
  if (!function->attrs.has("Variant") || !flat) return tensor_program::name_of_call(*call);
  std::string text;
  for (const Expr& inside : post_order((*flat)->body))
    if (as<CallNode>(inside) != nullptr) text += (text.empty() ? "" : "+") + call_label(inside);
  return text;
}

std::string SubGraph::ops_label(const DataflowGraph& graph) const {
  std::string text;
  inside_.for_each([&](PostDfsIndex i) {
    if (as<CallNode>(graph.node(i).expr) == nullptr) return;
    text += (text.empty() ? "" : "+") + call_label(graph.node(i).expr);
  });
  return text;
}

}  // namespace collage
