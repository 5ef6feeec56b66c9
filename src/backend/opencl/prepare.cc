#include "backend/opencl/prepare.h"

#include <algorithm>
#include <numeric>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "passes/attention.h"

namespace collage::opencl {
namespace {

const Shape& shape_of(const Expr& expr) { return expr->tensor_type().shape; }

/// With the last two dimensions exchanged; a constant is so at once.
Result<Expr> transposed(const Expr& matrix) {
  Ints axes(shape_of(matrix).size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  Expr result = TRY(make_call("transpose", {matrix}, {{"axes", axes}}));
  if (matrix->kind() != ExprKind::kConstant) return result;
  return make_constant(TRY(interpret(make_function({}, result), {}))[0]);
}

Result<Expr> product(const Expr& a, const Expr& b) {
  return make_call("nn.matmul", {a, b}, {{"transpose_a", false}, {"transpose_b", false}});
}

/// The rows of `a` and those of a constant or computed matrix.
Result<Expr> dense(const CallNode& call, const Expr& whole) {
  if (shape_of(call.args[0]).size() < 2) return whole;
  return product(call.args[0], TRY(transposed(call.args[1])));
}

Result<Expr> matmul(const CallNode& call, const Expr& whole) {
  if (!call.attrs.flag("transpose_b")) return whole;
  Attrs attrs = call.attrs;
  attrs.set("transpose_b", false);
  return make_call(call.op->name, {call.args[0], TRY(transposed(call.args[1]))}, std::move(attrs));
}

Result<Expr> convolution(const CallNode& call, const Expr& whole) {
  const Ints padding = call.attrs.ints("padding");
  if (std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) return whole;
  const size_t spatial = shape_of(call.args[0]).size() - 2;
  IntLists widths{{0, 0}, {0, 0}};
  for (size_t d = 0; d < spatial; ++d) widths.push_back({padding[d], padding[d + spatial]});
  const Expr data =
      TRY(make_call("nn.pad", {call.args[0], make_scalar(0.0f)}, {{"pad_width", widths}}));
  Attrs attrs = call.attrs;
  attrs.set("padding", Ints(2 * spatial, 0));
  return make_call(call.op->name, {data, call.args[1]}, std::move(attrs));
}

}  // namespace

Result<Function> prepared(const Function& flat) {
  Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || call->op == nullptr) return rebuilt;
    const std::string_view name = call->op->name;
    if (name == "nn.dense") return dense(*call, rebuilt);
    if (name == "nn.matmul" || name == "nn.batch_matmul") return matmul(*call, rebuilt);
    if (name == "nn.conv1d" || name == "nn.conv2d" || name == "nn.conv3d")
      return convolution(*call, rebuilt);
    return rebuilt;
  });
  return rewriter.rewrite(TRY(expand_attention(flat)));
}

}  // namespace collage::opencl
