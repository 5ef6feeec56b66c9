#include "frontend/onnx/folding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frontend/onnx/limits.h"
#include "ir/effects.h"
#include "ir/op.h"
#include "ir/work.h"
#include "ops/interpreter.h"

namespace collage::frontend {

namespace {

bool is_small(const Type& result) {
  for (const TensorType& leaf : result.leaves()) {
    const int64_t limit = is_float(leaf.dtype) ? kMaxFoldedElements : kMaxFoldedIntegers;
    if (num_elements(leaf.shape) > limit) return false;
  }
  return true;
}

// Quantised weights and biases stay what they are until the products that take them are recognised.
bool is_dequantised_tensor(const CallNode& call) {
  return call.op->name == "qnn.dequantize" && num_elements(call.tensor_type().shape) != 1;
}

double work_of(const CallNode& call) { return call.op->flops ? call_flops(call) : 0; }

}  // namespace

const Tensor* Folder::value(const Expr& expr) const {
  if (const auto* constant = as<ConstantNode>(expr)) return &constant->value;
  const auto* item = as<TupleGetItemNode>(expr);
  const auto found = known_.find(item == nullptr ? expr.get() : item->tuple.get());
  if (found == known_.end()) return nullptr;
  return &found->second.values[item == nullptr ? 0 : static_cast<size_t>(item->index)];
}

void Folder::know(const Expr& variable, Tensor value) {
  known_[variable.get()] = {variable, {std::move(value)}};
}

// The values of an argument where they are known, tuples flattened; false otherwise.
bool Folder::collect_values(const Expr& arg, std::vector<Tensor>& values) const {
  if (arg->type().is_tensor()) {
    const Tensor* known = value(arg);
    if (known != nullptr) values.push_back(*known);
    return known != nullptr;
  }
  const auto* tuple = as<TupleNode>(arg);
  return tuple != nullptr &&
         std::all_of(tuple->fields.begin(), tuple->fields.end(),
                     [&](const Expr& field) { return collect_values(field, values); });
}

Result<Expr> Folder::fold(Expr expr) {
  const auto* call = as<CallNode>(expr);
  // A call of nothing says something of the run.
  if (call == nullptr || call->op == nullptr || call->args.empty() || has_effects(*call) ||
      !is_small(call->type()) || is_dequantised_tensor(*call))
    return expr;
  std::vector<Tensor> inputs, results;
  if (std::optional<Tensor> known = value_by_types(*call)) results = {std::move(*known)};
  if (results.empty())
    for (const Expr& arg : call->args)
      if (!collect_values(arg, inputs)) return expr;
  size_t bytes = 0;
  for (const TensorType& leaf : call->type().leaves()) bytes += leaf.bytes();
  const double flops = work_of(*call);
  if (folded_bytes_ + bytes > kMaxFoldedBytes || flops > kMaxFoldedFlops ||
      folded_flops_ + flops > kMaxAllFoldedFlops)
    return expr;
  if (results.empty()) results = TRY(evaluate_call(*call, inputs));
  folded_bytes_ += bytes;
  folded_flops_ += flops;
  if (keeps_calls_) {
    known_[expr.get()] = {expr, std::move(results)};
    return expr;
  }
  if (call->type().is_tensor()) return make_constant(std::move(results[0]), expr->origin());
  std::vector<Expr> fields;
  for (Tensor& result : results) fields.push_back(make_constant(std::move(result), expr->origin()));
  return make_tuple(std::move(fields));
}

}  // namespace collage::frontend
