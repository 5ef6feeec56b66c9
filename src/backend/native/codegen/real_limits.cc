#include "backend/native/codegen/real_limits.h"

#include "backend/native/codegen/halide_math.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;

constexpr char kLarger[] = "collage_larger", kSmaller[] = "collage_smaller";

/// Halide knows what is strict when it begins to lower a pipeline, so the call holds such an
/// operation, of no meaning.
HExpr call(const std::string& name, const HExpr& a, const HExpr& b) {
  const HExpr strict = number_or_larger(0.0f, HExpr(0.0f));
  return ir::Call::make(a.type(), name, {a, b, strict}, ir::Call::PureExtern);
}

/// By its bits: LLVM takes what is computed without strictness for a number.
HExpr has_bits_of_nan(const HExpr& x) {
  const Halide::Type bits = x.type().with_code(halide_type_int);
  const bool single = bits.bits() == 32;
  const HExpr magnitude =
      Halide::reinterpret(bits, x) & ir::make_const(bits, single ? int64_t{0x7fffffff} : INT64_MAX);
  return magnitude > ir::make_const(bits, single ? int64_t{0x7f800000} : int64_t{0x7ff} << 52);
}

class LowerLimits : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  /// A limit of (low, x) is x where `low` is NaN, and NaN where x is.
  HExpr visit(const ir::Call* op) override {
    const std::optional<Limit> limit = limit_of(op);
    if (!limit) return ir::IRMutator::visit(op);
    const HExpr a = mutate(limit->a), given = mutate(limit->b);
    const bool is_larger = limit->name == kLarger;
    // Lowering may have found that it is.
    if (ir::is_const(a) || ir::is_const(given))
      return is_larger ? larger(a, given) : smaller(a, given);
    const std::string name = ir::unique_name("limit");
    const HExpr b = ir::Variable::make(op->type, name);
    const HExpr number = is_larger ? number_or_larger(b, a) : number_or_smaller(b, a);
    // Chosen as integers: of real numbers LLVM takes none for NaN.
    const Halide::Type bits = op->type.with_code(halide_type_int);
    const HExpr chosen = Halide::select(has_bits_of_nan(b), Halide::reinterpret(bits, b),
                                        Halide::reinterpret(bits, number));
    return ir::Let::make(name, given, Halide::reinterpret(op->type, chosen));
  }
};

}  // namespace

HExpr larger(const HExpr& a, const HExpr& b) {
  if (ir::is_const(a)) return number_or_larger(a, b);
  return ir::is_const(b) ? number_or_larger(b, a) : call(kLarger, a, b);
}
HExpr smaller(const HExpr& a, const HExpr& b) {
  if (ir::is_const(a)) return number_or_smaller(a, b);
  return ir::is_const(b) ? number_or_smaller(b, a) : call(kSmaller, a, b);
}

HExpr Limit::of(const HExpr& x, const HExpr& y) const { return call(name, x, y); }

std::optional<Limit> limit_of(const HExpr& expr) {
  const auto* made = expr.as<ir::Call>();
  if (made == nullptr || !made->is_extern() || (made->name != kLarger && made->name != kSmaller))
    return std::nullopt;
  return Limit{made->args[0], made->args[1], made->name};
}

void lower_limits(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new LowerLimits);
}

}  // namespace collage::native
