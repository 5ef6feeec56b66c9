#include "passes/fold_constants.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/effects.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "passes/lift_layouts.h"
#include "passes/products.h"
#include "runtime/shared_constants.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

constexpr size_t kSmall = size_t{64} << 10;
constexpr size_t kLargestMade = size_t{16} << 20;  // from small inputs
constexpr size_t kTotalGrowth = size_t{64} << 20;  // of all of one function

size_t bytes_of(const Type& type) {
  size_t bytes = 0;
  for (const TensorType& leaf : type.leaves()) bytes += leaf.bytes();
  return bytes;
}

// The leaves of an expression of constants and tuples of them; false when something else is inside.
bool constant_leaves(const Expr& expr, std::vector<Tensor>& leaves) {
  if (const auto* constant = as<ConstantNode>(expr)) {
    leaves.push_back(constant->value);
    return true;
  }
  const auto* tuple = as<TupleNode>(expr);
  if (tuple == nullptr) return false;
  for (const Expr& field : tuple->fields)
    if (!constant_leaves(field, leaves)) return false;
  return true;
}

Expr from_leaves(const Type& type, const std::vector<Tensor>& leaves, size_t& next,
                 const std::string& origin) {
  if (type.is_tensor()) return make_constant(shared_constant(leaves[next++]), origin);
  std::vector<Expr> fields;
  for (const Type& field : type.fields())
    fields.push_back(from_leaves(field, leaves, next, origin));
  return make_tuple(std::move(fields));
}

// Transposed matrices that nothing but products reads: these take them as they are, by a flag, and
// the weight stays one with what else reads it (the embeddings of a language model).
std::unordered_set<const ExprNode*> left_to_products(const Function& function) {
  std::unordered_map<const ExprNode*, bool> by_products;
  const std::vector<Expr> nodes = post_order(function->body);
  for (const Expr& node : nodes) {
    const auto* call = as<CallNode>(node);
    const bool product =
        call != nullptr && (as_op(node, "nn.matmul") || as_op(node, "nn.batch_matmul"));
    for (const Expr& child : expr_inputs(node))
      by_products.try_emplace(child.get(), true).first->second &= product;
  }
  by_products[function->body.get()] = false;
  std::unordered_set<const ExprNode*> left;
  for (const Expr& node : nodes)
    if (const CallNode* transpose = as_op(node, "transpose");
        transpose != nullptr && only_swaps_matrix_axes(*transpose) && by_products[node.get()])
      left.insert(node.get());
  return left;
}

class Folder {
 public:
  Result<Expr> fold(const Expr& expr) {
    if (const auto* item = as<TupleGetItemNode>(expr)) {
      const auto* tuple = as<TupleNode>(item->tuple);
      return tuple != nullptr ? tuple->fields[static_cast<size_t>(item->index)] : expr;
    }
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || call->args.empty() || has_effects(*call))
      return expr;
    if (std::optional<Tensor> known = value_by_types(*call))
      return make_constant(std::move(*known), expr->origin());
    std::vector<Tensor> inputs;
    for (const Expr& arg : call->args)
      if (!constant_leaves(arg, inputs)) return expr;
    if (call->op->is_view && inputs.size() == 1)
      return make_constant(inputs[0].reshaped(expr->tensor_type().shape), expr->origin());
    if (!worth_it(*call, inputs)) return expr;
    Result<std::vector<Tensor>> values = evaluate_call(*call, inputs);
    // A bad value (an index out of range) is for the run to report, where it may never be reached.
    if (!values) return expr;
    size_t next = 0;
    return from_leaves(expr->type(), *values, next, expr->origin());
  }

 private:
  bool worth_it(const CallNode& call, const std::vector<Tensor>& inputs) {
    size_t in = 0, out = bytes_of(call.type());
    for (const Tensor& input : inputs) in += input.bytes();
    // No backend wants what stands for real numbers, or the type of a half.
    if (out <= in || out <= kSmall || call.op->name == "cast" || call.op->name == "qnn.dequantize")
      return true;
    // What lift_layouts took out, to be stored.
    if (call.op->name == tensor_program::kCallOp && out <= kMostGrowthOfLayouts * in) return true;
    if (in > kSmall || out > kLargestMade || growth_ + out > kTotalGrowth) return false;
    growth_ += out;
    return true;
  }
  size_t growth_ = 0;
};

}  // namespace

Result<Function> fold_constants(const Function& function) {
  Folder folder;
  const auto left = left_to_products(function);
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    return left.count(original.get()) > 0 ? rebuilt : folder.fold(rebuilt);
  });
  return rewriter.rewrite(function);
}

}  // namespace collage
