#include "tensor_program/magnitude.h"

#include <algorithm>
#include <cmath>

#include "tensor_program/range.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {

namespace {

using Bound = std::optional<double>;

/// Far from infinity, however its steps are rounded.
double most_of(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) return 1e38;
  return dtype == DType::kFloat16 ? 3e4 : 1e300;
}

Bound of_type(DType dtype) {
  const std::optional<Range> range = range_of_type(dtype);
  if (!range) return std::nullopt;
  return std::max(std::abs(static_cast<double>(range->low)), static_cast<double>(range->high));
}

}  // namespace

std::optional<int64_t> whole_limit(const Term& term) {
  if ((term->op != TermOp::kMin && term->op != TermOp::kMax) ||
      term->args[1]->op != TermOp::kConstant)
    return std::nullopt;
  const Term& limit = term->args[1];
  const double value = is_float(limit.dtype()) ? limit->real : static_cast<double>(limit->integer);
  if (value != std::trunc(value) || std::abs(value) >= 0x1p30) return std::nullopt;
  return static_cast<int64_t>(value);
}

Bound magnitude_of_values(const Tensor& values) {
  double most = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    const double value = values.element_as_double(i);
    if (!std::isfinite(value)) return std::nullopt;
    most = std::max(most, std::abs(value));
  }
  return most;
}

Bound Magnitudes::of(const Term& term) {
  if (const auto found = memo_.find(term.get()); found != memo_.end()) return found->second.second;
  Bound bound = computed(term);
  if (!bound || *bound > most_of(term.dtype())) bound = std::nullopt;
  if (!bound && !is_float(term.dtype())) bound = of_type(term.dtype());
  memo_[term.get()] = {term, bound};
  return bound;
}

Bound Magnitudes::of_array(const std::string& name) {
  const auto [found, fresh] = arrays_.try_emplace(name);
  if (!fresh) return found->second;
  Bound bound;
  if (const Buffer* buffer = program_.find_buffer(name)) {
    if (buffer->value.defined()) bound = magnitude_of_values(buffer->value);
  } else if (const Stage* stage = program_.find_stage(name);
             stage != nullptr && stage->value.defined() && stage->updates.empty()) {
    bound = of(stage->value);
  }
  return arrays_[name] = bound;
}

Bound Magnitudes::computed(const Term& term) {
  const auto both = [&](const auto& combined) -> Bound {
    const Bound a = of(term->args[0]), b = of(term->args[1]);
    return a && b ? Bound(combined(*a, *b)) : std::nullopt;
  };
  switch (term->op) {
    case TermOp::kConstant:
      if (!is_float(term.dtype())) return std::abs(static_cast<double>(term->integer));
      return std::isfinite(term->real) ? Bound(std::abs(term->real)) : std::nullopt;
    case TermOp::kVar: {
      const auto known = variables_.find(term->name);
      return known == variables_.end() ? std::nullopt : Bound(known->second);
    }
    case TermOp::kLoad:
      return of_array(term->name);
    case TermOp::kAdd:
    case TermOp::kSubtract:
      return both([](double a, double b) { return a + b; });
    case TermOp::kMultiply:
      return both([](double a, double b) { return a * b; });
    case TermOp::kMin:
    case TermOp::kMax:
      return both([](double a, double b) { return std::max(a, b); });
    case TermOp::kDivide:
    case TermOp::kQuotient: {
      const Term& divisor = term->args[1];
      const Bound a = of(term->args[0]);
      // The reciprocal, by which compiled code may multiply, has to be finite too.
      if (!a || divisor->op != TermOp::kConstant || !is_float(divisor.dtype()) ||
          1 / std::abs(divisor->real) > most_of(divisor.dtype()))
        return std::nullopt;
      return *a / std::abs(divisor->real);
    }
    case TermOp::kSelect: {
      const Bound yes = of(term->args[1]), no = of(term->args[2]);
      return yes && no ? Bound(std::max(*yes, *no)) : std::nullopt;
    }
    case TermOp::kCast:
    case TermOp::kLikely:
    case TermOp::kNegate:
    case TermOp::kAbs:
    case TermOp::kTrunc:
      return of(term->args[0]);
    case TermOp::kRound:
    case TermOp::kCeil:
    case TermOp::kFloor: {
      const Bound a = of(term->args[0]);
      return a ? Bound(*a + 1) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// `term`, cut off as an int32, + `more`, which is of 16 bits: inside its limits where it has some.
// Undefined where its value may be near the ends of int32.
Term Magnitudes::as_integer(const Term& term, int64_t more) {
  if (const std::optional<int64_t> limit = whole_limit(term)) {
    const Term inside = as_integer(term->args[0], more);
    if (!inside.defined()) return {};
    const Term end = integer_constant(*limit + more, DType::kInt32);
    return term->op == TermOp::kMin ? min(inside, end) : max(inside, end);
  }
  const Bound bound = of(term);
  if (!bound || *bound >= 0x1p30) return {};
  return cast(DType::kInt32, term) + integer_constant(more, DType::kInt32);
}

Term Magnitudes::simplified(const Term& term) {
  return rewrite(term, [&](const Term& t) -> Term {
    if (t->op == TermOp::kSelect && t->args[0]->op == TermOp::kIsNan && of(t->args[0]->args[0]))
      return t->args[2];
    if (t.dtype() != DType::kInt32 || t->args.empty() || !whole_limit(t->args[0])) return t;
    Term cheaper;
    if (t->op == TermOp::kCast && is_float(t->args[0].dtype())) {
      cheaper = as_integer(t->args[0], 0);
    } else if (t->op == TermOp::kAdd) {
      const std::optional<int64_t> more = known_integer(t->args[1]);
      if (more && std::abs(*more) < 1 << 16) cheaper = as_integer(t->args[0], *more);
    }
    return cheaper.defined() ? cheaper : t;
  });
}

Program simplified_by_magnitude(Program program) {
  const Program given = program;
  Magnitudes magnitudes(given);
  for (Stage& stage : program.stages) {
    if (stage.value.defined()) stage.value = magnitudes.simplified(stage.value);
    for (Update& update : stage.updates) update.value = magnitudes.simplified(update.value);
  }
  return program;
}

}  // namespace collage::tensor_program
