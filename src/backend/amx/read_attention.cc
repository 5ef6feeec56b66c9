#include "backend/amx/read_attention.h"

#include <algorithm>

#include "backend/amx/strided_view.h"
#include "ir/op.h"
#include "ops/strided.h"

namespace collage::amx {
namespace {

/// Matrices of the last two dimensions of a tensor that is read with these strides.
Result<Matrices> matrices(const Shape& shape, const Ints& strides, int64_t offset = 0) {
  const size_t rank = shape.size();
  if (strides[rank - 1] != 1 && shape[rank - 1] != 1)
    return unsupported("attention whose columns lie apart");
  Matrices m;
  m.row = strides[rank - 2];
  const int64_t count = num_elements(Shape(shape.begin(), shape.end() - 2));
  for (int64_t head = 0; head < count; ++head) {
    int64_t at = offset, rest = head;
    for (size_t d = rank - 2; d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
    m.heads.push_back(at);
  }
  return m;
}

/// The strides at which the elements of a transpose's argument belong in its result.
Ints moved_strides(const CallNode& transpose) {
  const auto rank = static_cast<int64_t>(transpose.tensor_type().shape.size());
  const Ints dense = dense_strides(transpose.tensor_type().shape);
  const Ints& axes = transpose.attrs.ints("axes");
  Ints strides(dense.size());
  for (size_t i = 0; i < dense.size(); ++i)
    strides[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = dense[i];
  return strides;
}

}  // namespace

Status check_attention(const CallNode& call) {
  if (call.op == nullptr || call.op->name != "nn.attention") return unsupported("no attention");
  for (const Expr& arg : call.args) {
    if (!arg->type().is_tensor() || arg->tensor_type().dtype != DType::kFloat32)
      return unsupported("nn.attention of {}", arg->type().to_string());
    if (num_elements(arg->tensor_type().shape) == 0) return unsupported("an empty tensor");
  }
  if (call.args.size() == 4) {
    const Shape& mask = call.args[3]->tensor_type().shape;
    const Shape& keys = call.args[1]->tensor_type().shape;
    if (mask.empty() || mask.back() != keys[keys.size() - 2])
      return unsupported("a mask that is the same for all keys");
  }
  return {};
}

bool moves_rows(const CallNode& call) {
  if (call.op == nullptr || call.op->name != "transpose" || call.attrs.is_none("axes"))
    return false;
  const auto rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const int64_t last = call.attrs.ints("axes").back();
  return last == -1 || last == rank - 1;
}

bool reads_operands(const CallNode& call, const std::function<bool(const Expr&)>& is_source) {
  if (call.args.size() == 4 && !is_source(call.args[3])) return false;
  return std::all_of(call.args.begin(), call.args.begin() + 3, [&](const Expr& operand) {
    const Result<StridedView> view = read_strided(operand, is_source);
    return view.ok() && matrices(operand->tensor_type().shape, view->strides).ok();
  });
}

Result<Attention> read_attention(const Function& function) {
  const auto* call = as<CallNode>(function->body);
  Ints result_strides;
  if (call != nullptr && moves_rows(*call)) {
    result_strides = moved_strides(*call);
    call = as<CallNode>(call->args[0]);
  }
  if (call == nullptr || call->op == nullptr) return unsupported("no attention");
  if (call->op->name != "nn.attention") return unsupported("{} after attention", call->op->name);
  TRY(check_attention(*call));
  const auto param_of = [&](const Expr& expr) {
    return std::find(function->params.begin(), function->params.end(), expr);
  };
  const auto is_param = [&](const Expr& expr) { return param_of(expr) != function->params.end(); };
  const auto number_of = [&](const Expr& param) {
    return static_cast<size_t>(param_of(param) - function->params.begin());
  };
  const auto read = [&](const Expr& expr) -> Result<Matrices> {
    const StridedView view = TRY(read_strided(expr, is_param));
    Matrices m = TRY(matrices(expr->tensor_type().shape, view.strides, view.offset));
    m.param = number_of(view.source);
    return m;
  };
  const auto shape_of = [&](size_t arg) -> const Shape& {
    return call->args[arg]->tensor_type().shape;
  };
  Attention a;
  const size_t rank = shape_of(0).size();
  a.queries = shape_of(0)[rank - 2];
  a.width = shape_of(0)[rank - 1];
  a.keys = shape_of(2)[rank - 2];
  a.value_width = shape_of(2)[rank - 1];
  a.scale = static_cast<float>(call->attrs.real("scale"));
  a.causal = call->attrs.flag("causal");
  a.q = TRY(read(call->args[0]));
  a.k = TRY(read(call->args[1]));
  a.v = TRY(read(call->args[2]));
  if (call->args.size() == 4) {
    Shape scores = shape_of(0);
    scores[rank - 1] = a.keys;
    a.mask = TRY(matrices(scores, broadcast_strides(shape_of(3), scores)));
    if (const auto* constant = as<ConstantNode>(call->args[3]))
      a.constant_mask = constant->value;
    else if (is_param(call->args[3]))
      a.mask->param = number_of(call->args[3]);
    else
      return unsupported("a mask that is computed in the kernel");
  }
  const Shape& result = call->tensor_type().shape;
  a.out = TRY(matrices(result, result_strides.empty() ? dense_strides(result) : result_strides));
  return a;
}

}  // namespace collage::amx
