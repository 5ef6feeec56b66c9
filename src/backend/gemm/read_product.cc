#include "backend/gemm/read_product.h"

#include <algorithm>
#include <limits>

#include "ir/op.h"
#include "ops/strided.h"

namespace collage::gemm {
namespace {

struct Matrices {
  Shape batch;
  int64_t rows, columns;
};

/// A vector is one row.
Matrices matrices_of(const Shape& shape) {
  if (shape.size() < 2) return {{}, 1, shape.empty() ? 1 : shape[0]};
  return {{shape.begin(), shape.end() - 2}, shape[shape.size() - 2], shape.back()};
}

Result<Operand> operand_of(const Function& function, const Expr& expr) {
  Operand operand;
  operand.shape = expr->tensor_type().shape;
  if (const auto* constant = as<ConstantNode>(expr)) {
    operand.constant = constant->value;
    return operand;
  }
  const auto found = std::find(function->params.begin(), function->params.end(), expr);
  if (found == function->params.end())
    return unsupported("an operand that is computed in the kernel");
  operand.param = static_cast<int>(found - function->params.begin());
  return operand;
}

bool is_float(const Expr& expr) {
  return expr->type().is_tensor() && expr->tensor_type().dtype == DType::kFloat32;
}

}  // namespace

Status check_anchor(const CallNode& call) {
  if (call.op == nullptr || (call.op->name != "nn.dense" && call.op->name != "nn.matmul" &&
                             call.op->name != "nn.batch_matmul"))
    return unsupported("{} is no product", call.op != nullptr ? call.op->name : "a function");
  for (const Expr& arg : call.args) {
    if (!is_float(arg)) return unsupported("{} of {}", call.op->name, arg->type().to_string());
    if (num_elements(arg->tensor_type().shape) == 0) return unsupported("an empty tensor");
    for (int64_t d : arg->tensor_type().shape)
      if (d > std::numeric_limits<int>::max()) return unsupported("a dimension of {}", d);
  }
  return {};
}

bool is_scale(const CallNode& call, size_t position) {
  if (call.op->name != "multiply" && (call.op->name != "divide" || position != 0)) return false;
  const Expr& other = call.args[1 - position];
  return is_float(other) && other->kind() == ExprKind::kConstant &&
         num_elements(other->tensor_type().shape) == 1 &&
         call.tensor_type() == call.args[position]->tensor_type();
}

bool is_sum(const CallNode& call, size_t position) {
  const bool bias = call.op->name == "nn.bias_add" && position == 0;
  if (!bias && call.op->name != "add") return false;
  const TensorType& running = call.args[position]->tensor_type();
  if (!is_float(call.args[1 - position]) || call.tensor_type() != running) return false;
  const int64_t axis = bias ? call.attrs.integer("axis") : -1;
  return axis == -1 || axis == static_cast<int64_t>(running.shape.size()) - 1;
}

Result<Product> read_product(const Function& function) {
  Product p;
  const Expr* at = &function->body;
  // From the result inwards: the sum, the scale, the anchor.
  for (;;) {
    const auto* call = as<CallNode>(*at);
    if (call == nullptr || call->op == nullptr) return unsupported("no product");
    if (check_anchor(*call).ok()) break;
    bool folded = false;
    for (size_t position = 0; position < call->args.size() && call->args.size() == 2 && !folded;
         ++position) {
      const auto* inner = as<CallNode>(call->args[position]);
      if (inner == nullptr) continue;
      if (is_scale(*call, position)) {
        const auto& factor = as<ConstantNode>(call->args[1 - position])->value;
        const float value = factor.data<float>()[0];
        p.alpha = call->op->name == "divide" ? p.alpha / value : p.alpha * value;
        folded = true;
      } else if (at == &function->body && is_sum(*call, position)) {
        Result<Operand> addend = operand_of(function, call->args[1 - position]);
        if (!addend) continue;
        p.addend = std::move(addend).value();
        folded = true;
      }
      if (folded) at = &call->args[position];
    }
    if (!folded) return unsupported("{} after a product", call->op->name);
  }
  const auto& call = *as<CallNode>(*at);
  const bool dense = call.op->name == "nn.dense";
  p.transpose_a = !dense && call.attrs.flag("transpose_a");
  p.transpose_b = dense || call.attrs.flag("transpose_b");
  p.a = TRY(operand_of(function, call.args[0]));
  p.b = TRY(operand_of(function, call.args[1]));
  p.result = call.tensor_type().shape;
  const Matrices a = matrices_of(p.a.shape), b = matrices_of(p.b.shape);
  if (p.b.shape.size() < 2 || (p.a.shape.size() < 2 && !dense))
    return unsupported("a product of vectors");
  const Matrices result = matrices_of(p.result);
  int64_t rows = p.transpose_a ? a.columns : a.rows;
  p.k = static_cast<int>(p.transpose_a ? a.rows : a.columns);
  p.n = static_cast<int>(p.transpose_b ? b.rows : b.columns);
  const int64_t count = num_elements(result.batch);
  if (num_elements(b.batch) == 1 && num_elements(a.batch) == count &&
      (!p.transpose_a || count == 1)) {
    rows *= count;
    p.a_offsets = p.b_offsets = {0};
  } else {
    p.a_offsets = batch_offsets(a.batch, result.batch, a.rows * a.columns);
    p.b_offsets = batch_offsets(b.batch, result.batch, b.rows * b.columns);
  }
  if (rows > std::numeric_limits<int>::max()) return unsupported("{} rows", rows);
  p.m = static_cast<int>(rows);
  return p;
}

}  // namespace collage::gemm
