#include "backend/native/integers/product_factors.h"

#include <algorithm>

#include "backend/native/codegen/halide_math.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"
#include "tensor_program/range.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;

namespace {

constexpr int64_t kLeastLanes = 4;  // with fewer, templates of real numbers are as fast

/// What the term is for each step along two axes, and in the beginning; none where it is no such
/// term, or may be negative.
struct Affine {
  int64_t own = 0, over = 0, first = 0;
};
std::optional<Affine> affine(const Term& term, const std::string& own, const std::string& over) {
  if (tp::is_variable(term, own)) return Affine{1, 0, 0};
  if (tp::is_variable(term, over)) return Affine{0, 1, 0};
  if (const auto known = tp::known_integer(term); known && *known >= 0) return Affine{0, 0, *known};
  if (term->op != tp::TermOp::kAdd && term->op != tp::TermOp::kMultiply) return std::nullopt;
  const auto a = affine(term->args[0], own, over), b = affine(term->args[1], own, over);
  if (!a || !b) return std::nullopt;
  if (term->op == tp::TermOp::kAdd)
    return Affine{a->own + b->own, a->over + b->over, a->first + b->first};
  if (b->own != 0 || b->over != 0) return std::nullopt;
  return Affine{a->own * b->first, a->over * b->first, a->first * b->first};
}

/// Has the factor read positions in a window by an axis of their own.
std::optional<Window> take_window(Term& factor, const std::vector<tp::Axis>& axes,
                                  const tp::Axis& over) {
  for (const tp::Axis& own : axes) {
    std::optional<Window> found;
    tp::for_each_inside(factor, [&](const Term& term) {
      if (found || term->op != tp::TermOp::kAdd) return;
      const std::optional<Affine> steps = affine(term, own.name, over.name);
      if (!steps || steps->own == 0 || steps->over == 0) return;
      const int64_t last =
          steps->own * (own.extent - 1) + steps->over * (over.extent - 1) + steps->first;
      found = Window{own.name, {"at_" + own.name, last + 1}, term};
    });
    if (!found) continue;
    const Term axis = tp::var(found->axis.name);
    factor = tp::rewrite(factor,
                         [&](const Term& term) { return tp::same(term, found->at) ? axis : term; });
    return found;
  }
  return std::nullopt;
}

/// Whether it is of the type before it is widened, or zero as padding is.
bool was_of_type(const Term& real, DType dtype) {
  if (real->op == tp::TermOp::kSelect)
    return was_of_type(real->args[1], dtype) && was_of_type(real->args[2], dtype);
  if (real->op == tp::TermOp::kConstant) return real->real == 0;
  return real->op == tp::TermOp::kCast && real->args[0].dtype() == dtype;
}

/// Whether the lanes' operand holds every value of the factor.
bool fits_lanes(tp::Ranges& ranges, const Term& factor, const tp::Intrinsic& intrinsic) {
  const DType dtype = intrinsic.lanes_dtype();
  return is_float(dtype) ? was_of_type(factor, dtype) : intrinsic.takes_lanes(ranges.of(factor));
}

/// What to add to the factor so that it fits; none where nothing helps.
std::optional<int64_t> shift_to_fit(tp::Ranges& ranges, const Term& factor, DType dtype) {
  if (is_float(dtype)) return was_of_type(factor, dtype) ? std::optional<int64_t>(0) : std::nullopt;
  const std::optional<tp::Range> range = ranges.of(factor), type = tp::range_of_type(dtype);
  if (!range || range->high - range->low > type->high - type->low) return std::nullopt;
  const bool fits = range->low >= type->low && range->high <= type->high;
  return fits ? 0 : type->low - range->low;
}

/// term + by, where that is simpler than it looks.
Term shifted(const Term& term, int64_t by) {
  if (by == 0) return term;
  if (term->op == tp::TermOp::kSelect)
    return tp::select(term->args[0], shifted(term->args[1], by), shifted(term->args[2], by));
  if (term->op == tp::TermOp::kSubtract)
    if (const auto less = tp::known_integer(term->args[1]))
      return shifted(term->args[0], by - *less);
  return term + tp::integer_constant(by, term.dtype());
}

/// What is taken from the term and depends on no axis; undefined: nothing.
Term taken_from(const Term& term, const std::vector<tp::Axis>& axes) {
  if (term->op != tp::TermOp::kSubtract || tp::known_integer(term->args[1]) ||
      std::any_of(axes.begin(), axes.end(),
                  [&](const tp::Axis& axis) { return tp::depends_on(term->args[1], axis.name); }))
    return {};
  return term->args[1];
}

bool is_constant(const tp::Program& program, const Term& term) {
  const std::vector<Term> loads = tp::distinct_loads(term);
  return std::all_of(loads.begin(), loads.end(), [&](const Term& load) {
    const tp::Buffer* buffer = program.find_buffer(load->name);
    return buffer != nullptr && buffer->is_constant;
  });
}

/// Axes that may be the terms: those first that leave least of an instruction unused, a quarter of
/// all at most.
std::vector<tp::Axis> axes_for_terms(const std::vector<tp::Axis>& over, int64_t at_once) {
  std::vector<tp::Axis> found;
  for (const tp::Axis& axis : over)
    if (axis.extent > 1 && in_tiles(axis.extent, at_once) <= 4.0 / 3) found.push_back(axis);
  std::stable_sort(found.begin(), found.end(), [&](const tp::Axis& a, const tp::Axis& b) {
    return in_tiles(a.extent, at_once) < in_tiles(b.extent, at_once);
  });
  return found;
}

/// Has windows read by axes of their own. False where a copy would hold each element many times.
bool take_windows(Factors& found, const std::vector<tp::Axis>& axes) {
  if (take_window(found.row, axes, found.terms) || take_window(found.column, axes, found.terms))
    return false;
  for (const tp::Axis& over : found.others) {
    if (take_window(found.column, axes, over)) return false;
    std::optional<Window> window = take_window(found.row, axes, over);
    if (!window) continue;
    if (tp::depends_on(found.row, window->own)) return false;
    found.windows.push_back(*std::move(window));
  }
  return true;
}

}  // namespace

std::optional<Factors> factors_of(const tp::StagePlan& plan, const tp::TiledSum& tiled,
                                  const tp::Intrinsic& intrinsic) {
  if (!tiled.rows) return std::nullopt;
  const Stage& sum = *plan.program.find_stage(tiled.sum);
  const tp::Update& update = sum.updates[0];
  if (sum.dtype != intrinsic.stage().dtype || update.combine != tp::Combine::kSum ||
      update.value->op != tp::TermOp::kMultiply || sum.axes.back().extent % kLeastLanes != 0)
    return std::nullopt;
  std::vector<tp::Axis> axes = sum.axes, over;
  axes.insert(axes.end(), update.over.begin(), update.over.end());
  std::vector<tp::Replacement> ones;  // axes of one point are none
  for (const tp::Axis& axis : update.over) {
    if (axis.extent == 1) ones.push_back({axis.name, Term(0)});
    if (axis.extent != 1) over.push_back(axis);
  }
  const tp::ElementRanges elements = tp::element_ranges(plan.program);
  tp::Ranges ranges(axes, [&](const std::string& array) { return elements.at(array); });
  const std::string& column = sum.axes.back().name;
  const std::string& row = sum.axes[*tiled.rows].name;
  for (const size_t first : {0, 1}) {
    const auto factor = [&](size_t i) {
      return tp::simplify(tp::substitute(update.value->args[i], ones), axes);
    };
    Term by_row = factor(first);
    const Term by_column = factor(1 - first), taken = taken_from(by_row, axes);
    if (taken.defined()) by_row = by_row->args[0];
    if (tp::depends_on(by_row, column) || tp::depends_on(by_column, row) ||
        !fits_lanes(ranges, by_column, intrinsic))
      continue;
    const std::optional<int64_t> shift = shift_to_fit(ranges, by_row, intrinsic.shared_dtype());
    // Sums of columns are made once, if at all, and so are pairs of groups, of one matrix.
    const bool pairs = intrinsic.products() == 2;
    const bool one_matrix =
        std::none_of(sum.axes.begin(), sum.axes.end() - 1,
                     [&](const tp::Axis& axis) { return tp::depends_on(by_column, axis.name); });
    if (!shift || (pairs && !one_matrix)) continue;
    Term total = taken;
    if (*shift != 0) {
      const Term number = tp::integer_constant(*shift, sum.dtype);
      total = taken.defined() ? taken + number : number;
    }
    if ((pairs || total.defined()) && !is_constant(plan.program, by_column)) continue;
    for (const tp::Axis& terms : axes_for_terms(over, intrinsic.terms())) {
      if (pairs && terms.extent <= intrinsic.terms()) continue;
      Factors found{shifted(by_row, *shift),
                    by_column,
                    total,
                    terms,
                    round_up(terms.extent, intrinsic.terms()),
                    {},
                    {}};
      for (const tp::Axis& axis : over)
        if (axis.name != terms.name) found.others.push_back(axis);
      if (take_windows(found, sum.axes)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace collage::native
