#include "tensor_program/range.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "runtime/dispatch.h"

namespace collage::tensor_program {
namespace {

using MaybeRange = std::optional<Range>;
__extension__ using Wide = __int128;  // holds what one operation makes of two int64

template <typename T>
constexpr Range all_of() {
  using Limits = std::numeric_limits<T>;
  return {static_cast<int64_t>(Limits::min()), static_cast<int64_t>(Limits::max())};
}

MaybeRange within(Wide low, Wide high, DType dtype) {
  const MaybeRange type = range_of_type(dtype);
  if (!type || low < type->low || high > type->high) return std::nullopt;
  return Range{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

MaybeRange around(std::initializer_list<Wide> values, DType dtype) {
  return within(std::min(values), std::max(values), dtype);
}

/// Quotients rounded down, by every divisor but zero; by zero it is zero.
MaybeRange quotients(const Range& a, const Range& b, DType dtype) {
  Wide low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
  const auto take = [&](Wide value) {
    low = std::min(low, value);
    high = std::max(high, value);
  };
  if (b.low <= 0 && b.high >= 0) take(0);
  // The largest and least quotients are at the divisors furthest from zero and nearest to it.
  for (const int64_t divisor : {b.low, b.high, int64_t{-1}, int64_t{1}}) {
    if (divisor == 0 || divisor < b.low || divisor > b.high) continue;
    for (const int64_t value : {a.low, a.high})
      take(divisor == -1 ? -Wide{value} : Wide{floor_div(value, divisor)});
  }
  return within(low, high, dtype);
}

/// A remainder has its divisor's sign; by zero it is zero.
MaybeRange remainders(const Range& a, const Range& b, DType dtype) {
  if (b.low > 0 && a.low >= 0 && a.high < b.low) return a;
  return within(std::min<Wide>(Wide{b.low} + 1, 0), std::max<Wide>(Wide{b.high} - 1, 0), dtype);
}

}  // namespace

MaybeRange range_of_type(DType dtype) {
  if (dtype == DType::kBool) return Range{0, 1};
  if (!is_integer(dtype) || dtype == DType::kUInt64) return std::nullopt;
  return dispatch_integer(dtype, []<typename T>(Tag<T>) { return MaybeRange(all_of<T>()); });
}

MaybeRange range_of_values(const Tensor& values) {
  if (!range_of_type(values.dtype()) || values.size() == 0) return std::nullopt;
  Range range{values.element_as_int64(0), values.element_as_int64(0)};
  for (int64_t i = 1; i < values.size(); ++i) {
    range.low = std::min(range.low, values.element_as_int64(i));
    range.high = std::max(range.high, values.element_as_int64(i));
  }
  return range;
}

ElementRanges element_ranges(const Program& program) {
  ElementRanges found;
  for (const Buffer& buffer : program.buffers)
    found[buffer.name] =
        buffer.value.defined() ? range_of_values(buffer.value) : range_of_type(buffer.type.dtype);
  for (const Stage& stage : program.stages) {
    found[stage.name] = range_of_type(stage.dtype);
    if (!stage.value.defined() || !stage.updates.empty()) continue;
    const auto known = [&](const std::string& array) { return found.at(array); };
    found[stage.name] = Ranges(stage.axes, known).of(stage.value);
  }
  return found;
}

MaybeRange Ranges::of(const Term& term) {
  if (const auto found = memo_.find(term.get()); found != memo_.end()) return found->second.second;
  const MaybeRange range = computed(term);
  memo_[term.get()] = {term, range};
  return range;
}

MaybeRange Ranges::computed(const Term& term) {
  const MaybeRange type = range_of_type(term.dtype());
  if (!type) return std::nullopt;
  switch (term->op) {
    case TermOp::kConstant:
      return within(term->integer, term->integer, term.dtype());
    case TermOp::kVar:
      for (const Axis& axis : axes_)
        if (axis.name == term->name) return within(0, Wide{axis.extent} - 1, term.dtype());
      return type;
    case TermOp::kLoad:
      return elements_ ? elements_(term->name) : std::nullopt;
    case TermOp::kCast: {
      const MaybeRange from = of(term->args[0]);
      const MaybeRange kept = from ? within(from->low, from->high, term.dtype()) : std::nullopt;
      // An integer that may overflow has no value to be cast; other values become some of the type.
      if (!from && range_of_type(term->args[0].dtype())) return std::nullopt;
      return kept ? kept : type;
    }
    default:
      return term.dtype() == DType::kBool ? type : operation(*term.get());
  }
}

MaybeRange Ranges::operation(const TermNode& term) {
  if (term.op == TermOp::kSelect) {
    const MaybeRange yes = of(term.args[1]), no = of(term.args[2]);
    if (!yes || !no) return std::nullopt;
    return Range{std::min(yes->low, no->low), std::max(yes->high, no->high)};
  }
  const MaybeRange a = of(term.args[0]);
  const MaybeRange b = term.args.size() > 1 ? of(term.args[1]) : a;
  if (!a || !b) return std::nullopt;
  const Wide al = a->low, ah = a->high, bl = b->low, bh = b->high;
  switch (term.op) {
    case TermOp::kLikely:
      return a;
    case TermOp::kAdd:
      return within(al + bl, ah + bh, term.dtype);
    case TermOp::kSubtract:
      return within(al - bh, ah - bl, term.dtype);
    case TermOp::kMultiply:
      return around({al * bl, al * bh, ah * bl, ah * bh}, term.dtype);
    case TermOp::kDivide:
      return quotients(*a, *b, term.dtype);
    case TermOp::kModulo:
      return remainders(*a, *b, term.dtype);
    case TermOp::kMin:
      return Range{std::min(a->low, b->low), std::min(a->high, b->high)};
    case TermOp::kMax:
      return Range{std::max(a->low, b->low), std::max(a->high, b->high)};
    case TermOp::kNegate:
      return within(-ah, -al, term.dtype);
    case TermOp::kAbs:
      return al >= 0 ? a : within(ah <= 0 ? -ah : 0, std::max(-al, ah), term.dtype);
    default:
      return std::nullopt;
  }
}

}  // namespace collage::tensor_program
