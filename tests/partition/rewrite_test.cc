#include "partition/rewrite.h"

#include <gmock/gmock.h>

#include <set>

#include "ir/visitor.h"
#include "partition/rules/host.h"
#include "partition/tiny_graph.h"

namespace collage {
namespace {

// The expression with shared nodes numbered, so that two graphs print alike exactly when they are
// structurally equal.
std::string text(const Function& function) {
  std::map<const ExprNode*, size_t> number;
  std::string result;
  for (const Expr& expr : post_order(function->body)) {
    size_t id = number.size();
    number[expr.get()] = id;
    result += std::to_string(id) + "=";
    if (const auto* var = as<VarNode>(expr)) result += var->name;
    if (expr->kind() == ExprKind::kConstant) result += "const";
    if (const auto* call = as<CallNode>(expr))
      result += call->op != nullptr ? call->op->name : "fn";
    if (const auto* item = as<TupleGetItemNode>(expr)) result += "." + std::to_string(item->index);
    for (const Expr& input : expr_inputs(expr)) result += " " + std::to_string(number[input.get()]);
    result += "\n";
  }
  return result;
}

std::vector<CandidatePartition> kernels(const TinyGraph& g,
                                        std::vector<std::vector<std::string>> sets) {
  auto spec = std::make_shared<PartitionSpec>(PartitionSpec{"t", nullptr, Target{"t", {}, {}}});
  std::vector<CandidatePartition> result;
  for (const auto& set : sets)
    result.push_back({"test", SubGraph::of(g.graph(), g.set(set)), spec});
  return result;
}

Result<Function> partition(const TinyGraph& g, const std::vector<CandidatePartition>& kernels) {
  WriteOptions options;
  options.form = KernelForm::kInline;
  return TRY(write_kernels(g.graph(), kernels_to_write(kernels), Module(), options)).module.main();
}

std::vector<std::string> symbols(const Function& function) {
  std::vector<std::string> result;
  for (const Expr& expr : post_order(function->body))
    if (const auto* literal = as<FunctionNode>(expr)) {
      EXPECT_EQ(literal->attrs.integer("Primitive"), 1);
      result.push_back(literal->attrs.string("global_symbol"));
    }
  return result;
}

TEST(PartitionFunction, MakesEachKernelAPrimitiveCall) {
  TinyGraph g("x; y; a = conv(x, c1); b = add(a, y); d = conv(b, c2); e = add(d, y); return e");
  Function function = *partition(g, kernels(g, {{"a", "b"}, {"d", "e"}}));
  EXPECT_THAT(symbols(function),
              ::testing::ElementsAre("collage_t_conv_add", "collage_t_conv_add_1"));
  EXPECT_EQ(text(*inline_calls(function)), text(g.graph().function()));
}

TEST(PartitionFunction, TakesSeveralExitsApart) {
  TinyGraph g("x; a = relu(x); b = exp(a); d = tanh(a); e = add(b, d); return tuple(e, a)");
  Function function = *partition(g, kernels(g, {{"a", "b"}, {"d"}, {"e"}}));
  EXPECT_EQ(symbols(function).size(), 3u);
  Function plain = untangle_tuples(*inline_calls(function));
  EXPECT_EQ(text(plain), text(g.graph().function()));
}

TEST(PartitionFunction, LeavesWhatNeedsNoKernelToTheHost) {
  TinyGraph g(
      "x; s = split(x); p = s.0; q = s.1; r = reshape(p); t = tuple(r, q); k = concat(t); "
      "return k");
  Function function = *partition(g, kernels(g, {{"s"}, {"t", "k"}}));
  EXPECT_EQ(symbols(function).size(), 2u);
  EXPECT_EQ(text(*inline_calls(function)), text(g.graph().function()));
}

TEST(PartitionFunction, RefusesKernelsThatWaitForOneAnother) {
  // {a, d} needs b, which needs a: convex each, but a cycle together.
  TinyGraph g("x; y; a = relu(x); b = relu(y); d = exp(b); e = exp(a); return tuple(d, e)");
  Result<Function> function = partition(g, kernels(g, {{"a", "d"}, {"b", "e"}}));
  ASSERT_FALSE(function.ok());
  EXPECT_THAT(function.status().message(), ::testing::HasSubstr("cycle"));
}

}  // namespace
}  // namespace collage
