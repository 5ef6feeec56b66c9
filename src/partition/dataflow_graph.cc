#include "partition/dataflow_graph.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"
#include "partition/stated_kernels.h"
#include "partition/stated_places.h"
#include "partition/stated_targets.h"

namespace collage {

namespace {

void mark_external(std::vector<DataflowGraph::Node>& nodes, PostDfsIndex index) {
  nodes[index].is_external = true;
  if (as<TupleNode>(nodes[index].expr) != nullptr)
    for (PostDfsIndex field : nodes[index].inputs) mark_external(nodes, field);
}

// Nearest common node of two chains in the tree of post-dominators, whose parents have larger
// indices.
PostDfsIndex common_post_dominator(const std::vector<PostDfsIndex>& parent, PostDfsIndex a,
                                   PostDfsIndex b) {
  while (a != b && a != DataflowGraph::kNone && b != DataflowGraph::kNone) {
    if (a < b) {
      a = parent[a];
    } else {
      b = parent[b];
    }
  }
  return a == b ? a : DataflowGraph::kNone;
}

}  // namespace

DataflowGraph::DataflowGraph(Function function) : function_(std::move(function)) {
  std::vector<Expr> order = post_order(function_->body);
  nodes_.resize(order.size());
  for (PostDfsIndex i = 0; i < order.size(); ++i) {
    nodes_[i].index = i;
    nodes_[i].expr = order[i];
    index_.emplace(order[i].get(), i);
    for (const Expr& input : expr_inputs(order[i])) {
      PostDfsIndex from = index_.at(input.get());
      nodes_[i].inputs.push_back(from);
      std::vector<PostDfsIndex>& outputs = nodes_[from].outputs;
      if (outputs.empty() || outputs.back() != i) outputs.push_back(i);
    }
  }
  mark_external(nodes_, nodes_.size() - 1);

  upstream_.assign(size(), IndexSet());
  downstream_.assign(size(), IndexSet());
  for (PostDfsIndex i = 0; i < size(); ++i)
    for (PostDfsIndex input : nodes_[i].inputs) {
      upstream_[i] |= upstream_[input];
      upstream_[i].insert(input);
    }
  for (PostDfsIndex i = size(); i-- > 0;)
    for (PostDfsIndex output : nodes_[i].outputs) {
      downstream_[i] |= downstream_[output];
      downstream_[i].insert(output);
    }

  post_dominator_.assign(size(), kNone);
  for (PostDfsIndex i = size(); i-- > 0;) {
    const std::vector<PostDfsIndex>& outputs = nodes_[i].outputs;
    if (nodes_[i].is_external || outputs.empty()) continue;
    PostDfsIndex common = outputs[0];
    for (PostDfsIndex output : outputs)
      common = common_post_dominator(post_dominator_, common, output);
    post_dominator_[i] = common;
  }

  stated_kernels_ = std::make_shared<const StatedKernels>(*this);
  stated_places_ = std::make_shared<const StatedPlaces>(*this);
  stated_targets_ = std::make_shared<const StatedTargets>(*this);
}

NodeRole node_role(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kVar:
      return NodeRole::kVariable;
    case ExprKind::kTuple:
      return NodeRole::kTuple;
    case ExprKind::kTupleGetItem:
      return NodeRole::kProjection;
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(expr);
      return call->op != nullptr && call->op->is_view ? NodeRole::kView : NodeRole::kKernel;
    }
    default:
      return NodeRole::kConstant;
  }
}

Function untangle_tuples(const Function& function) {
  std::unordered_map<const ExprNode*, size_t> uses{{function->body.get(), 1}};
  for (const Expr& expr : post_order(function->body))
    for (const Expr& input : expr_inputs(expr)) ++uses[input.get()];
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    if (const auto* item = as<TupleGetItemNode>(rebuilt))
      if (const auto* tuple = as<TupleNode>(item->tuple))
        return tuple->fields[static_cast<size_t>(item->index)];
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr) return rebuilt;
    std::vector<Expr> args = call->args;
    bool changed = false;
    for (size_t i = 0; i < args.size(); ++i)
      if (const auto* tuple = as<TupleNode>(args[i]);
          tuple != nullptr && uses[as<CallNode>(original)->args[i].get()] > 1) {
        args[i] = make_tuple(tuple->fields);
        changed = true;
      }
    if (!changed) return rebuilt;
    return Expr(std::make_shared<CallNode>(call->op, call->callee, std::move(args), call->attrs,
                                           call->type(), call->origin()));
  });
  Result<Function> result = rewriter.rewrite(function);
  COLLAGE_CHECK(result.ok(), "{}", result.status().to_string());
  return *result;
}

}  // namespace collage
