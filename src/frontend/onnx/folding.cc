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

// The values of an argument when it is constant, tuples flattened; false otherwise.
bool collect_constants(const Expr& arg, std::vector<Tensor>& values) {
  if (const auto* constant = as<ConstantNode>(arg)) {
    values.push_back(constant->value);
    return true;
  }
  const auto* tuple = as<TupleNode>(arg);
  return tuple != nullptr &&
         std::all_of(tuple->fields.begin(), tuple->fields.end(),
                     [&](const Expr& field) { return collect_constants(field, values); });
}

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

Result<Expr> Folder::fold(Expr expr) {
  const auto* call = as<CallNode>(expr);
  // A call of nothing says something of the run.
  if (call == nullptr || call->op == nullptr || call->args.empty() || has_effects(*call) ||
      !is_small(call->type()) || is_dequantised_tensor(*call))
    return expr;
  std::vector<Tensor> inputs;
  for (const Expr& arg : call->args)
    if (!collect_constants(arg, inputs)) return expr;
  size_t bytes = 0;
  for (const TensorType& leaf : call->type().leaves()) bytes += leaf.bytes();
  const double flops = work_of(*call);
  if (folded_bytes_ + bytes > kMaxFoldedBytes || flops > kMaxFoldedFlops ||
      folded_flops_ + flops > kMaxAllFoldedFlops)
    return expr;
  std::vector<Tensor> results = TRY(evaluate_call(*call, inputs));
  folded_bytes_ += bytes;
  folded_flops_ += flops;
  if (call->type().is_tensor()) return make_constant(std::move(results[0]), expr->origin());
  std::vector<Expr> fields;
  for (Tensor& result : results) fields.push_back(make_constant(std::move(result), expr->origin()));
  return make_tuple(std::move(fields));
}

}  // namespace collage::frontend
