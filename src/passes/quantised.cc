#include "passes/quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/structural.h"
#include "ops/interpreter.h"
#include "ops/window.h"
#include "passes/constants.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

// The call, or the constant that it gives where its arguments are constants.
Result<Expr> folded(const Expr& expr) {
  std::vector<Tensor> inputs;
  for (const Expr& arg : call_of(expr).args) {
    const auto* constant = as<ConstantNode>(arg);
    if (constant == nullptr) return expr;
    inputs.push_back(constant->value);
  }
  const std::vector<Tensor> values = TRY(evaluate_call(call_of(expr), inputs));
  return make_constant(values[0], expr->origin());
}

// The call on integers in place of the numbers that they stand for.
Result<Expr> on_integers(const CallNode& call, const Dequantised& source) {
  std::vector<Expr> args = call.args;
  args[0] = source.data;
  return folded(TRY(remake(call, std::move(args))));
}

// f(dequantize(q)) to dequantize(f(q)), for scales of whole tensors
Result<Expr> move_elements(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  std::optional<Dequantised> source = dequantised(call.args[0]);
  if (!source || source->axis) return Expr();
  return dequantise(TRY(on_integers(call, *source)), *source, expr->origin());
}

// The same for the largest of some elements, where larger integers stand for larger numbers; no
// integer stands for the largest of none
Result<Expr> choose_largest(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  std::optional<Dequantised> source = dequantised(call.args[0]);
  if (!source || !is_positive(source->scale)) return Expr();
  const Shape &from = call.args[0]->tensor_type().shape, &to = expr->tensor_type().shape;
  if (call.attrs.has("pool_size")) {
    const Window window = known_window(call.attrs, call.attrs.ints("pool_size"));
    for (size_t d = 0; d < window.rank(); ++d)
      if (sees_only_padding(window, d, from[d + 2], to[d + 2])) return Expr();
  }
  return move_elements(expr, uses);
}

// transpose(dequantize(q)) to dequantize(transpose(q)), along the axis that the scales come to
Result<Expr> transpose_channels(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  std::optional<Dequantised> source = dequantised(call.args[0]);
  const auto* axes = std::get_if<Ints>(call.attrs.find("axes"));
  if (!source || !source->axis || axes == nullptr ||
      static_cast<int64_t>(axes->size()) != rank_of(expr))
    return Expr();
  const Ints from = from_start(*axes, rank_of(expr));
  source->axis = std::find(from.begin(), from.end(), *source->axis) - from.begin();
  return dequantise(TRY(on_integers(call, *source)), *source, expr->origin());
}

// nn.pad(dequantize(q), 0) to dequantize(nn.pad(q, zero point))
Result<Expr> pad_with_zero_point(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  std::optional<Dequantised> source = dequantised(call.args[0]);
  if (!source || source->axis) return Expr();
  const std::optional<double> value = scalar_value(call.args[1]);
  const std::optional<double> zero = scalar_value(source->zero_point);
  if (!value || *value != 0 || !zero) return Expr();
  Tensor padding =
      Tensor::zeros(source->data->tensor_type().dtype, call.args[1]->tensor_type().shape);
  const bool fits = dispatch_integer(padding.dtype(), [&]<typename T>(Tag<T>) {
    using Limits = std::numeric_limits<T>;
    if (*zero < static_cast<double>(Limits::min()) || *zero > static_cast<double>(Limits::max()))
      return false;
    padding.data<T>()[0] = static_cast<T>(*zero);
    return true;
  });
  if (!fits) return Expr();
  Expr padded = TRY(remake(call, {source->data, make_constant(std::move(padding))}));
  return dequantise(padded, *source, expr->origin());
}

// concatenate(dequantize(p), dequantize(q)) to dequantize(concatenate(p, q)), of equal parameters
Result<Expr> concatenate_integers(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const auto* tuple = as<TupleNode>(call.args[0]);
  if (tuple == nullptr || tuple->fields.empty()) return Expr();
  std::optional<Dequantised> first;
  std::vector<Expr> fields;
  for (const Expr& field : tuple->fields) {
    std::optional<Dequantised> source = dequantised(field);
    if (!source || source->axis) return Expr();
    if (!first) first = source;
    if (source->data->tensor_type().dtype != first->data->tensor_type().dtype ||
        !same_value(source->scale, first->scale) ||
        !same_value(source->zero_point, first->zero_point))
      return Expr();
    fields.push_back(source->data);
  }
  return dequantise(TRY(remake(call, {make_tuple(std::move(fields))})), *first, expr->origin());
}

// quantize of constants to the integers
Result<Expr> quantise_constants(const Expr& expr, const Uses&) {
  Expr constant = TRY(folded(expr));
  return constant == expr ? nullptr : constant;
}

const std::vector<RewriteRule> kQuantisedRules = {
    {"move integers",
     {"reshape", "squeeze", "expand_dims", "nn.batch_flatten", "transpose", "strided_slice",
      "copy"},
     move_elements},
    {"transpose integers with a scale a channel", {"transpose"}, transpose_channels},
    {"choose the largest integer",
     {"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool1d",
      "nn.global_max_pool2d", "nn.global_max_pool3d"},
     choose_largest},
    {"pad with the zero point", {"nn.pad"}, pad_with_zero_point},
    {"concatenate integers", {"concatenate"}, concatenate_integers},
    {"quantise constants", {"qnn.quantize"}, quantise_constants},
};

}  // namespace

std::optional<Dequantised> dequantised(const Expr& expr) {
  const CallNode* call = as_op(expr, "qnn.dequantize");
  if (call == nullptr) return std::nullopt;
  Dequantised result{call->args[0], call->args[1], call->args[2], std::nullopt};
  if (rank_of(result.scale) != 0)
    result.axis = from_start(call->attrs.integer("axis"), rank_of(expr));
  return result;
}

Result<Expr> dequantise(const Expr& data, const Dequantised& like, const std::string& origin) {
  return make_call("qnn.dequantize", {data, like.scale, like.zero_point},
                   {{"axis", like.axis.value_or(-1)}}, origin);
}

bool holds_bytes(const Expr& expr) {
  const DType dtype = expr->tensor_type().dtype;
  return dtype == DType::kInt8 || dtype == DType::kUInt8;
}

bool same_value(const Expr& a, const Expr& b) {
  if (a == b) return true;
  return a->kind() == ExprKind::kConstant && b->kind() == ExprKind::kConstant &&
         structural_equal(a, b);
}

bool is_positive(const Expr& scale) {
  const auto* constant = as<ConstantNode>(scale);
  if (constant == nullptr) return false;
  for (int64_t i = 0; i < constant->value.size(); ++i) {
    const double value = constant->value.element_as_double(i);
    if (!std::isfinite(value) || value < std::numeric_limits<float>::min()) return false;
  }
  return true;
}

std::span<const RewriteRule> moved_dequantize_rules() { return kQuantisedRules; }

}  // namespace collage
