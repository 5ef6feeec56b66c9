#include "backend/native/dot_products.h"

#include <algorithm>
#include <map>

#include "backend/native/code_cache.h"
#include "backend/native/halide_math.h"
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

using Features = std::vector<Halide::Target::Feature>;

/// When to compute an intrinsic by instructions: where the processor has any of these features, and
/// none of those that have better ones for what the intrinsic is for.
struct Processors {
  Features any;
  Features but = {};
};

const std::map<std::string, Processors>& processors() {
  using Halide::Target;
  const Features vnni = {Target::AVX512_Zen4, Target::AVX512_SapphireRapids, Target::AVXVNNI};
  static const std::map<std::string, Processors> table = {
      {"dot_uint8x4", {vnni}},
      {"dot_uint8x4_small", {{Target::AVX2}, vnni}},
      {"dot_int16x2", {{Target::AVX2}}},
      {"dot_bfloat16x2", {{Target::AVX512_Zen4, Target::AVX512_SapphireRapids}}},
  };
  return table;
}

/// An axis of a copy that stands for a position which an axis of the sum and one that it is over
/// give together, as those of a convolution do: at = row * stride + tap * dilation.
struct Window {
  std::string own;  ///< the sum's axis
  tp::Axis axis;
  Term at;
};

/// What a sum multiplies. It is over `terms`, which instructions add up, and others.
struct Factors {
  Term row, column;
  int64_t shift = 0;  ///< of the rows' factor, which is stored with it
  tp::Axis terms;
  int64_t padded = 0;  ///< terms with those of zero that fill the last instruction
  std::vector<tp::Axis> others;
  std::vector<Window> windows;  ///< in the row's factor, which names their axes
};

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

/// A number as a type that holds all its values.
Term narrowed(const Term& term, DType dtype) {
  const bool widened = term->op == tp::TermOp::kCast && term->args[0].dtype() == dtype;
  return widened ? term->args[0] : tp::cast(dtype, term);
}

bool is_constant(const tp::Program& program, const Term& term) {
  const std::vector<Term> loads = tp::distinct_loads(term);
  return std::all_of(loads.begin(), loads.end(), [&](const Term& load) {
    const tp::Buffer* buffer = program.find_buffer(load->name);
    return buffer != nullptr && buffer->is_constant;
  });
}

double share_used(const tp::Axis& terms, int64_t at_once) {
  return static_cast<double>(terms.extent) / static_cast<double>(round_up(terms.extent, at_once));
}

/// Axes that may be the terms: those first that leave least of an instruction unused, a quarter of
/// all at most.
std::vector<tp::Axis> axes_for_terms(const std::vector<tp::Axis>& over, int64_t at_once) {
  std::vector<tp::Axis> found;
  for (const tp::Axis& axis : over)
    if (axis.extent > 1 && share_used(axis, at_once) >= 0.75) found.push_back(axis);
  std::stable_sort(found.begin(), found.end(), [&](const tp::Axis& a, const tp::Axis& b) {
    return share_used(a, at_once) > share_used(b, at_once);
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

std::optional<Factors> factors_of(const StagePlan& plan, const TiledSum& tiled,
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
    const Term by_row = factor(first), by_column = factor(1 - first);
    if (tp::depends_on(by_row, column) || tp::depends_on(by_column, row) ||
        !fits_lanes(ranges, by_column, intrinsic))
      continue;
    const std::optional<int64_t> shift = shift_to_fit(ranges, by_row, intrinsic.shared_dtype());
    // Sums of columns are made once, if at all.
    if (!shift || (*shift != 0 && !is_constant(plan.program, by_column))) continue;
    for (const tp::Axis& terms : axes_for_terms(over, intrinsic.terms())) {
      Factors found{shifted(by_row, *shift),
                    by_column,
                    *shift,
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

/// A copy of a factor, and where the sum reads it.
struct Copy {
  Stage stage;
  std::vector<Term> at;

  void add(const tp::Axis& axis, const Term& index) {
    stage.axes.push_back(axis);
    at.push_back(index);
  }
  Term read(DType as) const { return tp::cast(as, tp::load(stage.name, stage.dtype, at)); }
};

/// The array that the copy is equal to, if any: the sum may read that.
const std::string* equal_array(const tp::Program& program, const Stage& copy) {
  const Term& load = copy.value;
  if (load->op != tp::TermOp::kLoad || load->args.size() != copy.axes.size() ||
      program.type_of(load->name).shape != copy.shape())
    return nullptr;
  for (size_t d = 0; d < copy.axes.size(); ++d)
    if (!tp::is_variable(load->args[d], copy.axes[d].name)) return nullptr;
  return &load->name;
}

/// What sums of shifted rows begin with: as much less as the shift makes them larger.
Stage start_of(const Stage& sum, const Factors& factors) {
  Stage start;
  start.name = sum.name + "_start";
  start.dtype = sum.dtype;
  tp::Update update;
  for (const tp::Axis& axis : sum.axes) {
    if (!tp::depends_on(factors.column, axis.name)) continue;
    start.axes.push_back(axis);
    update.at.push_back(tp::var(axis.name));
  }
  update.over = factors.others;
  update.over.push_back(factors.terms);
  update.combine = tp::Combine::kSum;
  update.value = factors.column * tp::integer_constant(-factors.shift, sum.dtype);
  start.updates.push_back(std::move(update));
  return start;
}

}  // namespace

std::vector<const tp::Intrinsic*> machine_intrinsics() {
  const Halide::Target target = kernel_target();
  const auto has_any = [&](const Features& features) {
    return std::any_of(features.begin(), features.end(), [&](Halide::Target::Feature feature) {
      return target.has_feature(feature);
    });
  };
  std::vector<const tp::Intrinsic*> found;
  for (const tp::Intrinsic& intrinsic : tp::intrinsics()) {
    const auto row = processors().find(intrinsic.name);
    if (row != processors().end() && has_any(row->second.any) && !has_any(row->second.but))
      found.push_back(&intrinsic);
  }
  return found;
}

bool can_use_intrinsic(const StagePlan& plan, const tp::Intrinsic& intrinsic) {
  return std::any_of(plan.sums.begin(), plan.sums.end(), [&](const TiledSum& sum) {
    return factors_of(plan, sum, intrinsic).has_value();
  });
}

bool use_intrinsic(StagePlan& plan, TiledSum& tiled, const tp::Intrinsic& intrinsic,
                   int64_t width) {
  const std::optional<Factors> factors = factors_of(plan, tiled, intrinsic);
  if (!factors) return false;
  std::vector<Stage>& stages = plan.program.stages;
  const auto position = std::find_if(stages.begin(), stages.end(),
                                     [&](const Stage& stage) { return stage.name == tiled.sum; });
  Stage sum = *position;
  const int terms = to_int(intrinsic.terms()), lanes = to_int(width);
  const tp::Axis last = sum.axes.back(), steps{factors->terms.name, factors->padded / terms};
  const Term step = tp::var(steps.name), term = tp::var("term"), column = tp::var(last.name);
  const Term inner = step * terms + term;

  // Beyond the last term columns are zero, and rows, whatever they are, are that of the last.
  const bool padded = factors->padded != factors->terms.extent;
  const int64_t last_term = factors->terms.extent - 1;
  const auto existing = [&](const Term& at) {
    return padded ? tp::min(at, to_int(last_term)) : at;
  };
  Copy rows, columns;
  rows.stage.name = sum.name + "_rows";
  rows.stage.dtype = intrinsic.shared_dtype();
  rows.stage.value =
      narrowed(tp::substitute(factors->row, {{steps.name, existing(tp::var(steps.name))}}),
               rows.stage.dtype);
  columns.stage.name = sum.name + "_columns";
  columns.stage.dtype = intrinsic.lanes_dtype();
  const std::vector<tp::Replacement> packed = {
      {last.name, tp::var("panel") * lanes + tp::var("lane")}, {steps.name, existing(inner)}};
  columns.stage.value = narrowed(tp::substitute(factors->column, packed), columns.stage.dtype);
  if (padded)
    columns.stage.value =
        tp::select(inner <= to_int(last_term), columns.stage.value, tp::zero(columns.stage.dtype));

  const auto add_plain = [&](const tp::Axis& axis) {
    if (tp::depends_on(factors->row, axis.name)) rows.add(axis, tp::var(axis.name));
    if (tp::depends_on(factors->column, axis.name)) columns.add(axis, tp::var(axis.name));
  };
  for (size_t d = 0; d + 1 < sum.axes.size(); ++d) {
    for (const Window& window : factors->windows)
      if (window.own == sum.axes[d].name) rows.add(window.axis, window.at);
    add_plain(sum.axes[d]);
  }
  columns.add({"panel", last.extent / width}, column / lanes);
  for (const tp::Axis& axis : factors->others) add_plain(axis);
  rows.add({factors->terms.name, factors->padded}, inner);
  columns.add(steps, step);
  columns.add({"lane", width}, column % lanes);
  columns.add({"term", intrinsic.terms()}, term);

  std::vector<Stage> before;  // the sum
  if (const std::string* array = equal_array(plan.program, rows.stage)) {
    rows.stage.name = *array;
  } else {
    before.push_back(rows.stage);
  }
  before.push_back(columns.stage);
  if (factors->shift != 0) {
    before.push_back(start_of(sum, *factors));
    sum.value = tp::load(before.back().name, sum.dtype, before.back().updates[0].at);
  }
  tp::Update& update = sum.updates[0];
  update.over = factors->others;
  update.over.push_back(steps);
  update.over.push_back({"term", intrinsic.terms()});
  update.value = rows.read(sum.dtype) * columns.read(sum.dtype);
  tiled.intrinsic = &intrinsic;
  *position = std::move(sum);
  stages.insert(position, std::make_move_iterator(before.begin()),
                std::make_move_iterator(before.end()));
  return true;
}

}  // namespace collage::native
