#include "partition/sub_graph.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "ir/visitor.h"
#include "partition/tiny_graph.h"

namespace collage {
namespace {

std::string text(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kVar:
      return as<VarNode>(expr)->name;
    case ExprKind::kConstant:
      return "c";
    case ExprKind::kTuple:
    case ExprKind::kCall: {
      std::string list;
      for (const Expr& input : expr_inputs(expr))
        if (input->kind() != ExprKind::kFunction) list += (list.empty() ? "" : ", ") + text(input);
      std::string head;
      if (const auto* call = as<CallNode>(expr)) {
        head = call->op != nullptr ? call->op->name
                                   : as<FunctionNode>(call->callee)->attrs.string("Composite") +
                                         "{" + text(as<FunctionNode>(call->callee)->body) + "}";
      }
      return head + "(" + list + ")";
    }
    case ExprKind::kTupleGetItem:
      return text(as<TupleGetItemNode>(expr)->tuple) + "." +
             std::to_string(as<TupleGetItemNode>(expr)->index);
    default:
      return "?";
  }
}

TEST(DataflowGraph, NumbersNodesSoThatInputsComeFirst) {
  TinyGraph g("x; y; a = add(x, y); b = relu(a); d = add(b, a); return tuple(d, a)");
  const DataflowGraph& graph = g.graph();
  for (const DataflowGraph::Node& node : graph.nodes())
    for (PostDfsIndex input : node.inputs) EXPECT_LT(input, node.index);
  EXPECT_EQ(g.names(graph.downstream(g.index("x"))), "a b d result");
  EXPECT_EQ(g.names(graph.upstream(g.index("d"))), "x y a b");
  EXPECT_TRUE(graph.node(g.index("d")).is_external);
  EXPECT_TRUE(graph.node(g.index("a")).is_external);
  EXPECT_FALSE(graph.node(g.index("b")).is_external);
  EXPECT_EQ(graph.node(g.index("a")).outputs.size(), 3u);
}

TEST(DataflowGraph, FindsPostDominators) {
  TinyGraph g("x; a = relu(x); b = exp(a); d = tanh(a); e = add(b, d); f = relu(e); return f");
  const DataflowGraph& graph = g.graph();
  EXPECT_EQ(graph.post_dominator(g.index("a")), g.index("e"));
  EXPECT_EQ(graph.post_dominator(g.index("b")), g.index("e"));
  EXPECT_EQ(graph.post_dominator(g.index("e")), g.index("f"));
  EXPECT_EQ(graph.post_dominator(g.index("f")), DataflowGraph::kNone);
}

TEST(SubGraph, KnowsItsBoundary) {
  TinyGraph g("x; y; a = conv(x, c1); b = add(a, y); d = relu(b); return d");
  SubGraph sub_graph = SubGraph::of(g.graph(), g.set({"a", "b"}));
  EXPECT_EQ(g.names(sub_graph.input()), "x y");
  EXPECT_EQ(g.names(sub_graph.entry()), "a b");
  EXPECT_EQ(g.names(sub_graph.exit()), "b");
  EXPECT_EQ(g.names(sub_graph.output()), "d");
  EXPECT_EQ(sub_graph.kind(), FusionKind::kAnchor);
  EXPECT_EQ(sub_graph.depth(g.graph()).calls, 2u);
  EXPECT_EQ(sub_graph.ops_label(g.graph()), "conv+add");
}

TEST(SubGraph, SaysWhyItIsInvalid) {
  TinyGraph g("x; a = relu(x); b = exp(a); d = tanh(b); e = add(a, d); return e");
  std::string why;
  EXPECT_TRUE(SubGraph::of(g.graph(), g.set({"a", "b", "d", "e"})).is_valid(g.graph(), {}, &why))
      << why;
  // b lies on a path from a to e.
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"a", "e"})).is_valid(g.graph(), {0, 0, true}, &why));
  EXPECT_EQ(why, "a path leaves it and comes back");
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"a", "b"})).is_valid(g.graph(), {0, 1, true}, &why));
  EXPECT_EQ(why, "2 exits, at most 1");
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"a", "b"})).is_valid(g.graph(), {0, 2}, &why));
  EXPECT_EQ(why, "an exit is also used inside");
  EXPECT_TRUE(SubGraph::of(g.graph(), g.set({"a", "b"})).is_valid(g.graph(), {0, 2, true}, &why));
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"a", "b", "d", "e"})).is_valid(g.graph(), {3}, &why));
  EXPECT_EQ(why, "depth 4, at most 3");
}

TEST(SubGraph, TuplesDoNotCrossItsBoundary) {
  TinyGraph g(
      "x; a = relu(x); t = tuple(a, x); k = concat(t); s = split(k); p = s.0; "
      "q = s.1; return add(p, q)");
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"k"})).is_valid(g.graph(), {}));
  EXPECT_TRUE(SubGraph::of(g.graph(), g.set({"t", "k"})).is_valid(g.graph(), {}));
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"a", "t"})).is_valid(g.graph(), {}));
  // A call that gives a tuple may be an exit: the host takes it apart.
  EXPECT_TRUE(SubGraph::of(g.graph(), g.set({"s"})).is_valid(g.graph(), {}));
  EXPECT_FALSE(SubGraph::of(g.graph(), g.set({"p"})).is_valid(g.graph(), {}));
}

TEST(SubGraph, ExtractsAFunction) {
  TinyGraph g("x; y; a = conv(x, c1); b = add(a, y); d = relu(b); return d");
  Function function = SubGraph::of(g.graph(), g.set({"a", "b"})).extract(g.graph());
  EXPECT_EQ(function->params.size(), 2u);
  EXPECT_EQ(text(function->body), "add(conv(p0, c), p1)");
}

TEST(SubGraph, ExtractsSeveralExitsAsATuple) {
  TinyGraph g("x; a = relu(x); b = exp(a); return tuple(a, b)");
  Function function = SubGraph::of(g.graph(), g.set({"a", "b"})).extract(g.graph());
  EXPECT_EQ(text(function->body), "(relu(p0), exp(relu(p0)))");
}

TEST(SubGraph, ExtractsNestedSubGraphsAsComposites) {
  TinyGraph g("x; y; a = conv(x, c1); b = add(a, y); d = relu(b); return d");
  SubGraph conv_add = SubGraph::of(g.graph(), g.set({"a", "b"})).labelled(g.graph(), "conv_add");
  SubGraph both = conv_add.disjoint_union(g.graph(), SubGraph::of(g.graph(), g.set({"d"})));
  EXPECT_EQ(text(both.extract(g.graph())->body), "relu(conv_add{add(conv(p0, c), p1)}(p0, p1))");
  // A nested sub-graph that needs another one's result is built after it, whatever their order.
  SubGraph swapped = SubGraph::of(g.graph(), g.set({"d"}))
                         .labelled(g.graph(), "act")
                         .disjoint_union(g.graph(), conv_add);
  EXPECT_EQ(text(swapped.extract(g.graph())->body),
            "act{relu(p0)}(conv_add{add(conv(p0, c), p1)}(p0, p1))");
}

TEST(SubGraph, SubstitutesIntoAnotherGraph) {
  TinyGraph g("x; w; z = exp(w); a = conv(x, c1); b = relu(a); return add(b, z)");
  TinyGraph h("x; a = conv(x, c1); b = relu(a); return b");
  SubGraph original = SubGraph::of(g.graph(), g.set({"a", "b"})).labelled(g.graph(), "ab");
  SubGraph mapped =
      original.substitute(h.graph(), {{g.index("a"), h.index("a")}, {g.index("b"), h.index("b")}});
  EXPECT_EQ(h.names(mapped.inside()), "a b");
  EXPECT_EQ(text(mapped.extract(h.graph())->body), text(original.extract(g.graph())->body));
}

TEST(UntangleTuples, GivesEachConsumerItsOwnTuple) {
  TinyGraph g(
      "x; a = relu(x); t = tuple(a, x); k = concat(t); m = concat(t); p = t.0; "
      "return tuple(k, m, p)");
  DataflowGraph graph(untangle_tuples(g.graph().function()));
  size_t tuples = 0;
  for (const DataflowGraph::Node& node : graph.nodes())
    if (node_role(node.expr) == NodeRole::kTuple && !node.is_external) {
      ++tuples;
      EXPECT_EQ(node.outputs.size(), 1u);
    }
  EXPECT_EQ(tuples, 2u);
  for (const DataflowGraph::Node& node : graph.nodes())
    EXPECT_NE(node_role(node.expr), NodeRole::kProjection);
}

// A random graph of elementwise operators.
Function random_function(size_t ops) {
  std::vector<Expr> values = {make_var("x", TensorType{{4}, DType::kFloat32})};
  for (size_t i = 0; i < ops; ++i) {
    auto pick = [&] { return values[*rc::gen::inRange<size_t>(0, values.size())]; };
    values.push_back(*rc::gen::arbitrary<bool>() ? *make_call("add", {pick(), pick()})
                                                 : *make_call("relu", {pick()}));
  }
  return make_function({values[0]}, values.back());
}

TEST(SubGraph, IsConvexExactlyWhenNoOutsideNodeLiesBetween) {
  register_tiny_ops();
  EXPECT_TRUE(rc::check([] {
    DataflowGraph graph(random_function(*rc::gen::inRange<size_t>(1, 12)));
    IndexSet inside;
    for (size_t i = 0; i < graph.size(); ++i)
      if (node_role(graph, i) == NodeRole::kKernel && *rc::gen::arbitrary<bool>()) inside.insert(i);
    if (inside.empty()) return;
    bool expected = true;
    for (size_t i = 0; i < graph.size(); ++i)
      if (!inside.contains(i) && graph.upstream(i).intersects(inside) &&
          graph.downstream(i).intersects(inside))
        expected = false;
    RC_ASSERT(SubGraph::of(graph, inside).is_convex(graph) == expected);
  }));
}

}  // namespace
}  // namespace collage
