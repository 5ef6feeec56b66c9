#include "backend/native/codegen/halide_conversions.h"

#include "backend/native/codegen/halide_math.h"
#include "runtime/dispatch.h"

namespace collage::native {
namespace {

/// The same value, which Halide does not look behind and LLVM drops: it would join a conversion of
/// float16 with one of integers, and has no instructions for both in one.
HExpr kept_apart(const HExpr& value) { return exact_sum(value, HExpr(-0.0f)); }

HExpr widened(const HExpr& value) {
  if (!value.type().is_bfloat()) return kept_apart(Halide::cast<float>(value));
  return Halide::reinterpret<float>(Halide::cast<uint32_t>(Halide::reinterpret<uint16_t>(value))
                                    << 16);
}
HExpr narrowed(const HExpr& value, Halide::Type type) {
  if (!type.is_bfloat()) return Halide::cast(type, kept_apart(value));
  const HExpr bits = Halide::reinterpret<uint32_t>(value);
  const HExpr infinity = Halide::Internal::make_const(bits.type(), 0x7f800000),
              magnitude = bits & 0x7fffffff, high = bits >> 16;
  const HExpr nearest = (bits + (high & 1) + 0x7fff) >> 16;  // ties to even
  const HExpr half = Halide::select(magnitude > infinity, high | 0x40, nearest);
  return Halide::reinterpret(type, Halide::cast<uint16_t>(half));
}

}  // namespace

Halide::Type halide_type(DType dtype) {
  if (dtype == DType::kBool) return Halide::UInt(8);
  if (dtype == DType::kBFloat16) return Halide::BFloat(16);
  if (is_float(dtype)) return Halide::Float(static_cast<int>(8 * dtype_size(dtype)));
  return dispatch_integer(dtype, []<typename T>(Tag<T>) { return Halide::type_of<T>(); });
}

HExpr converted(const HExpr& value, DType dtype) {
  const Halide::Type type = halide_type(dtype);
  const auto is_half = [](const Halide::Type& t) {
    return t.bits() == 16 && (t.is_float() || t.is_bfloat());
  };
  if (dtype == DType::kBool) return value != Halide::Internal::make_zero(value.type());
  if (is_half(value.type()) && type == Halide::Float(32)) return widened(value);
  if (value.type() == Halide::Float(32) && is_half(type)) return narrowed(value, type);
  return Halide::cast(type, value);
}

HExpr saturated(const HExpr& value, DType dtype) {
  const Halide::Type type = halide_type(dtype);
  if (type.bits() == 16) return Halide::saturating_cast(type, value);
  return Halide::saturating_cast(type, Halide::saturating_cast(Halide::Int(16), value));
}

HExpr rounded_bits(const HExpr& value, int64_t added, DType dtype) {
  const Halide::Type type = halide_type(dtype), bits = type.with_code(halide_type_uint);
  const HExpr more = Halide::cast(bits, HExpr(to_int(added)));
  return Halide::reinterpret(type, Halide::cast(bits, nearest_bits(value)) + more);
}

}  // namespace collage::native
