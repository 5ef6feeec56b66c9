#include "backend/native/codegen/horizontal_reductions.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "backend/native/codegen/halide_math.h"
#include "backend/native/codegen/real_limits.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;

constexpr size_t kFewest = 8;

/// An operation that may be nested: its operands, and the same of others.
template <typename Op>
struct Nested {
  static std::optional<Nested> of(const HExpr& expr) {
    const auto* op = expr.as<Op>();
    return op == nullptr ? std::nullopt : std::optional(Nested{op->a, op->b});
  }
  HExpr of(const HExpr& x, const HExpr& y) const { return Op::make(x, y); }
  HExpr a, b;
};

std::optional<Limit> same_as(const Limit& like, const HExpr& expr) {
  std::optional<Limit> found = limit_of(expr);
  return found && found->name == like.name ? found : std::nullopt;
}
template <typename Op>
std::optional<Nested<Op>> same_as(const Nested<Op>&, const HExpr& expr) {
  return Nested<Op>::of(expr);
}

/// The operands of nested operations of that kind; false where some is no load of the first one's
/// array.
template <typename Op>
bool collect_loads(const Op& like, const HExpr& value, std::vector<const ir::Load*>& loads) {
  if (const std::optional<Op> op = same_as(like, value))
    return collect_loads(like, op->a, loads) && collect_loads(like, op->b, loads);
  const auto* load = value.as<ir::Load>();
  if (load == nullptr || !ir::is_const_one(load->predicate) ||
      (!loads.empty() && load->name != loads[0]->name))
    return false;
  loads.push_back(load);
  return true;
}

/// The elements of the vector, halves combined until one is left.
template <typename Op>
HExpr combined(const Op& like, const HExpr& vector) {
  const int half = vector.type().lanes() / 2;
  if (half == 0) return vector;
  const std::string name = Halide::Internal::unique_name("halves");
  const HExpr whole = ir::Variable::make(vector.type(), name);
  const HExpr halves = like.of(ir::Shuffle::make_slice(whole, 0, 1, half),
                               ir::Shuffle::make_slice(whole, half, 1, half));
  return ir::Let::make(name, vector, combined(like, halves));
}

class ReduceHorizontally : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  HExpr visit(const ir::Add* op) override { return reduced(op, Nested<ir::Add>::of(op)); }
  HExpr visit(const ir::Mul* op) override { return reduced(op, Nested<ir::Mul>::of(op)); }
  HExpr visit(const ir::Call* op) override { return reduced(op, limit_of(op)); }

 private:
  template <typename Node, typename Op>
  HExpr reduced(const Node* op, const std::optional<Op>& like) {
    std::vector<const ir::Load*> loads;
    if (op->type != Halide::Float(32) || !like || !collect_loads(*like, op, loads) ||
        loads.size() < kFewest || !std::has_single_bit(loads.size()))
      return ir::IRMutator::visit(op);
    // By their distance from the one that stands first.
    std::vector<int64_t> at;
    for (const ir::Load* load : loads) {
      const HExpr distance = ir::simplify(load->index - loads[0]->index);
      const auto known = ir::as_const_int(distance);
      if (!known) return ir::IRMutator::visit(op);
      at.push_back(*known);
    }
    std::sort(at.begin(), at.end());
    for (size_t i = 0; i < at.size(); ++i)
      if (at[i] != at[0] + static_cast<int64_t>(i)) return ir::IRMutator::visit(op);
    const int lanes = static_cast<int>(loads.size());
    const HExpr first = ir::simplify(loads[0]->index + static_cast<int>(at[0]));
    const HExpr vector = ir::Load::make(
        op->type.with_lanes(lanes), loads[0]->name, ir::Ramp::make(first, 1, lanes),
        loads[0]->image, loads[0]->param, ir::const_true(lanes), ir::ModulusRemainder());
    return combined(*like, vector);
  }
};

}  // namespace

void reduce_horizontally(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new ReduceHorizontally);
}

}  // namespace collage::native
