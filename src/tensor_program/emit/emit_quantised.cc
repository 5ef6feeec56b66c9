// Emission of qnn.quantize and qnn.dequantize, exactly as their reference kernels round. The
// products of quantised tensors stand beside those of real numbers (emit_product.cc).
#include "ops/quantised.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

/// Further from zero than any difference of an integer of 16 bits and a zero point among such.
constexpr double kFar = 1 << 17;

DType dtype_of(const CallNode& call, size_t i) { return call.args[i]->tensor_type().dtype; }

/// A scale or zero point: one for all elements, or that of the element's position along the axis.
Term parameter(Emitter& e, const CallNode& call, size_t i, const Coords& at) {
  Coords own;
  if (!call.args[i]->tensor_type().shape.empty())
    own.logical.push_back(at.logical[static_cast<size_t>(
        normal_axis_of(call, "axis", static_cast<int64_t>(at.logical.size())))]);
  return e.value(call.args[i], own);
}

bool is_one(const Term& scale) { return scale->op == TermOp::kConstant && scale->real == 1; }

Term whole_steps(const Term& x, const Term& scale) {
  const Term steps = is_one(scale) ? x : quotient(x, scale);
  return round(select(is_nan(steps), 0.0f, steps));
}

Term quantize(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const DType to = call.tensor_type().dtype;
  const Term steps = whole_steps(e.value(call.args[0], at), parameter(e, call, 1, at));
  const Term zero_point = parameter(e, call, 2, at);
  const Term low = lowest(to), high = highest(to);
  const auto real = [](int64_t value, DType dtype) {
    return constant(static_cast<double>(value), dtype);
  };
  if (!is_narrow_integer(to)) {
    const DType wide = DType::kFloat64;
    const Term value = cast(wide, steps) + cast(wide, zero_point);
    return cast(to, clamp(value, real(low->integer, wide), real(high->integer, wide)));
  }
  // A zero point that is known, and in the range of its type as it should be, leaves one clamp.
  const std::optional<int64_t> known = known_integer(zero_point);
  if (known && *known >= low->integer && *known <= high->integer) {
    const Term within = clamp(steps, real(low->integer - *known, DType::kFloat32),
                              real(high->integer - *known, DType::kFloat32));
    return cast(to, cast(DType::kInt32, within) + zero_point);
  }
  const Term near = clamp(steps, constant(-kFar, DType::kFloat32), constant(kFar, DType::kFloat32));
  const auto bound = [](const Term& limit) {
    return integer_constant(limit->integer, DType::kInt32);
  };
  return cast(to, clamp(cast(DType::kInt32, near) + zero_point, bound(low), bound(high)));
}

/// What `quantize` rounded and cut off to make this integer with a zero point of that value: a
/// whole number that needs no integer to stand for it. Undefined where the term is no such integer.
Term quantised_steps(const Term& integer, const Term& zero_point) {
  const std::optional<int64_t> zero = known_integer(zero_point);
  const DType to = integer.dtype();
  if (!zero || integer->op != TermOp::kCast || !is_narrow_integer(to)) return {};
  Term wide = integer->args[0];
  if (*zero != 0) {
    if (wide->op != TermOp::kAdd || !is_integer_constant(wide->args[1], *zero)) return {};
    wide = wide->args[0];
  }
  if (wide->op != TermOp::kCast || wide.dtype() != DType::kInt32) return {};
  const Term within = wide->args[0];
  const auto ends_at = [&](const Term& term, TermOp op, const Term& end) {
    return term->op == op && term->args[1]->op == TermOp::kConstant &&
           term->args[1]->real == static_cast<double>(end->integer - *zero);
  };
  if (within.dtype() != DType::kFloat32 || !ends_at(within, TermOp::kMax, lowest(to)) ||
      !ends_at(within->args[0], TermOp::kMin, highest(to)))
    return {};
  const Term& whole = within->args[0]->args[0];
  const bool is_whole = whole->op == TermOp::kRound && whole->args[0]->op == TermOp::kSelect &&
                        whole->args[0]->args[0]->op == TermOp::kIsNan;
  return is_whole ? within : Term();
}

Term steps_from(const Term& integer, const Term& zero_point) {
  const Term steps = quantised_steps(integer, zero_point);
  if (steps.defined()) return steps;
  if (is_narrow_integer(integer.dtype())) return cast(DType::kInt32, integer) - zero_point;
  if (is_integer_constant(zero_point, 0)) return integer;
  return cast(DType::kInt64, integer) - cast(DType::kInt64, zero_point);
}

Term dequantize(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Term zero_point = parameter(e, call, 2, at), scale = parameter(e, call, 1, at);
  const Term steps = steps_from(e.value(call.args[0], at), zero_point);
  const Term value = cast(DType::kFloat32, steps);
  return is_one(scale) ? value : value * scale;
}

Status check_quantize(const CallNode& call) {
  const DType to = call.tensor_type().dtype;
  return is_quantised_type(to) ? Status() : unsupported("qnn.quantize to {}", dtype_name(to));
}
Status check_dequantize(const CallNode& call) {
  const DType from = dtype_of(call, 0);
  return is_quantised_type(from) ? Status() : unsupported("qnn.dequantize of {}", dtype_name(from));
}

}  // namespace

void add_quantised_rules(EmitTable& table) {
  table["qnn.quantize"] = {check_quantize, quantize, true};
  table["qnn.dequantize"] = {check_dequantize, dequantize, true};
}

}  // namespace collage::tensor_program
