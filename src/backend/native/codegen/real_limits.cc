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

/// The bits but for the sign, as an integer.
HExpr magnitude_of(const HExpr& x) {
  const Halide::Type bits = x.type().with_code(halide_type_int);
  return Halide::reinterpret(bits, x) &
         ir::make_const(bits, bits.bits() == 32 ? int64_t{0x7fffffff} : INT64_MAX);
}

/// By its bits: LLVM takes what is computed without strictness for a number.
HExpr is_of_nan(const HExpr& magnitude) {
  const Halide::Type bits = magnitude.type();
  return magnitude >
         ir::make_const(bits, bits.bits() == 32 ? int64_t{0x7f800000} : int64_t{0x7ff} << 52);
}

/// Of how many numbers it is the limit, by limits of that name.
size_t operands_of(const HExpr& expr, const std::string& name) {
  const std::optional<Limit> limit = limit_of(expr);
  return limit && limit->name == name ? operands_of(limit->a, name) + operands_of(limit->b, name)
                                      : 1;
}

class LowerLimits : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  /// A limit of (low, x) is x where `low` is NaN, and NaN where x is.
  HExpr visit(const ir::Call* op) override {
    const std::optional<Limit> limit = limit_of(op);
    if (!limit) return ir::IRMutator::visit(op);
    const bool is_larger = limit->name == kLarger;
    if (operands_of(op, limit->name) > 2) return of_several(op, limit->name);
    const HExpr a = mutate(limit->a), given = mutate(limit->b);
    // Lowering may have found that it is.
    if (ir::is_const(a) || ir::is_const(given))
      return is_larger ? larger(a, given) : smaller(a, given);
    const std::string name = ir::unique_name("limit");
    const HExpr b = ir::Variable::make(op->type, name);
    const HExpr number = is_larger ? number_or_larger(b, a) : number_or_smaller(b, a);
    // Chosen as integers: of real numbers LLVM takes none for NaN.
    const Halide::Type bits = op->type.with_code(halide_type_int);
    const HExpr chosen = Halide::select(is_of_nan(magnitude_of(b)), Halide::reinterpret(bits, b),
                                        Halide::reinterpret(bits, number));
    return ir::Let::make(name, given, Halide::reinterpret(op->type, chosen));
  }

 private:
  /// The limit of the numbers among operands, and the largest of the magnitudes of all.
  struct Several {
    HExpr number, magnitude;
    std::vector<std::pair<std::string, HExpr>> given;
  };

  Several several(const HExpr& expr, const std::string& name) {
    const std::optional<Limit> limit = limit_of(expr);
    if (!limit || limit->name != name) {
      const HExpr value = mutate(expr);
      // Lowering may have found that it is; Halide prints no name for an infinity.
      if (ir::is_const(value)) return {value, magnitude_of(value), {}};
      const std::string own = ir::unique_name("limit");
      const HExpr x = ir::Variable::make(expr.type(), own);
      return {x, magnitude_of(x), {{own, value}}};
    }
    Several all = several(limit->a, name);
    const Several b = several(limit->b, name);
    all.given.insert(all.given.end(), b.given.begin(), b.given.end());
    all.number = name == kLarger ? number_or_larger(all.number, b.number)
                                 : number_or_smaller(all.number, b.number);
    all.magnitude = Halide::max(all.magnitude, b.magnitude);
    return all;
  }

  /// Magnitudes tell whether one of them is NaN: neither waits for the other, as choices at each
  /// operand would.
  HExpr of_several(const HExpr& expr, const std::string& name) {
    const Several all = several(expr, name);
    // Chosen as integers, as above.
    const Halide::Type bits = all.magnitude.type();
    const int64_t nan = bits.bits() == 32 ? int64_t{0x7fc00000} : int64_t{0x7ff8} << 48;
    HExpr limit = Halide::reinterpret(
        expr.type(), Halide::select(is_of_nan(all.magnitude), ir::make_const(bits, nan),
                                    Halide::reinterpret(bits, all.number)));
    for (size_t i = all.given.size(); i-- > 0;)
      limit = ir::Let::make(all.given[i].first, all.given[i].second, limit);
    return limit;
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
