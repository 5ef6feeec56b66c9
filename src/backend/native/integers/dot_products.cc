#include "backend/native/integers/dot_products.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/halide_math.h"
#include "backend/native/integers/product_factors.h"
#include "backend/native/integers/quad_pairs.h"
#include "base/integers.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"
#include "tensor_program/transform.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;

namespace {

/// With more pairs of groups than that, one group at a time is as fast: a pair takes 1.6 as long.
constexpr double kMostPairs = 0.6;  // of the groups
constexpr char kOneGroup[] = "dot_uint8x4_small";

using Features = std::vector<Halide::Target::Feature>;

/// When to compute an intrinsic by instructions: where the processor has any of these features, and
/// none of those that have better ones for what the intrinsic is for.
struct Processors {
  Features any;
  Features but = {};
};

Features vnni_features() {
  using Halide::Target;
  return {Target::AVX512_Zen4, Target::AVX512_SapphireRapids, Target::AVXVNNI};
}

bool has_any(const Features& features) {
  const Halide::Target target = kernel_target();
  return std::any_of(features.begin(), features.end(),
                     [&](Halide::Target::Feature feature) { return target.has_feature(feature); });
}

const std::map<std::string, Processors>& processors() {
  using Halide::Target;
  const Features vnni = vnni_features();
  static const std::map<std::string, Processors> table = {
      {"dot_uint8x4", {vnni}},
      {"dot_uint8x4_twice", {{Target::AVX2}, vnni}},
      {kOneGroup, {{Target::AVX2}, vnni}},
      {"dot_int16x2", {{Target::AVX2}}},
      {"dot_bfloat16x2", {{Target::AVX512_Zen4, Target::AVX512_SapphireRapids}}},
  };
  return table;
}

/// A number as a type that holds all its values.
Term narrowed(const Term& term, DType dtype) {
  const bool widened = term->op == tp::TermOp::kCast && term->args[0].dtype() == dtype;
  return widened ? term->args[0] : tp::cast(dtype, term);
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

/// What the columns add up to: as often as rows are shifted by one, their sums are larger by that.
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
  update.value = factors.column;
  start.updates.push_back(std::move(update));
  return start;
}

/// Adds up two groups of terms at a time: what is added, and how many such pairs there are. The
/// weights become constants of the program, as quad_pairs.h orders them; none where they are not
/// known, or too many groups are alone. `rows` and `columns`: those that are read group by group.
std::optional<std::pair<Term, int64_t>> sum_of_pairs(tp::Program& program, const Stage& sum,
                                                     Copy rows, Copy columns, int64_t lanes) {
  const Result<std::optional<Tensor>> weights = tp::constant_value(program, columns.stage);
  if (!weights.ok() || !*weights) return std::nullopt;
  const QuadPairs pairs = pair_quads(**weights, lanes);
  const int64_t groups = (*weights)->shape().end()[-3], count = pairs.terms.shape().end()[-2];
  if (static_cast<double>(count) > kMostPairs * static_cast<double>(groups) + 1)
    return std::nullopt;
  const auto constant = [&](const char* name, const Tensor& value) {
    program.buffers.push_back({sum.name + name, {value.shape(), value.dtype()}, true, value});
    return program.buffers.back().name;
  };
  const std::string terms = constant("_terms", pairs.terms);
  const std::vector<Term> pair_at(columns.at.begin(), columns.at.end() - 2);
  const Term term = columns.at.back(), column = tp::var(sum.axes.back().name);
  columns.at.front() = column / to_int(lanes);
  columns.at.end()[-2] = column % to_int(lanes);
  const auto product = [&](int half, const char* name, const Tensor& value) {
    std::vector<Term> at = pair_at;
    at.emplace_back(half);
    rows.at.back() = tp::load(terms, pairs.terms.dtype(), std::move(at)) + term;
    columns.stage.name = constant(name, value);
    return rows.read(sum.dtype) * columns.read(sum.dtype);
  };
  const Term first = product(0, "_first", pairs.first);
  return std::pair(first + product(1, "_second", pairs.second), count);
}

}  // namespace

std::vector<const tp::Intrinsic*> machine_intrinsics() {
  std::vector<const tp::Intrinsic*> found;
  for (const tp::Intrinsic& intrinsic : tp::intrinsics()) {
    const auto row = processors().find(intrinsic.name);
    if (row != processors().end() && has_any(row->second.any) && !has_any(row->second.but))
      found.push_back(&intrinsic);
  }
  return found;
}

bool multiplies_integers_faster() {
  return has_any(vnni_features()) && !has_any({Halide::Target::AVX512_SapphireRapids});
}

bool can_use_intrinsic(const tp::StagePlan& plan, const tp::Intrinsic& intrinsic) {
  return std::any_of(plan.sums.begin(), plan.sums.end(), [&](const tp::TiledSum& sum) {
    return factors_of(plan, sum, intrinsic).has_value();
  });
}

bool use_intrinsic(tp::StagePlan& plan, tp::TiledSum& tiled, const tp::Intrinsic& intrinsic,
                   int64_t width, int64_t lanes) {
  const std::optional<Factors> factors = factors_of(plan, tiled, intrinsic);
  if (!factors) return false;
  std::vector<Stage>& stages = plan.program.stages;
  const auto position = std::find_if(stages.begin(), stages.end(),
                                     [&](const Stage& stage) { return stage.name == tiled.sum; });
  Stage sum = *position;
  const int terms = to_int(intrinsic.terms()), panel = to_int(width);
  const tp::Axis last = sum.axes.back();
  tp::Axis steps{factors->terms.name, factors->padded / terms};
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
      {last.name, tp::var("panel") * panel + tp::var("lane")}, {steps.name, existing(inner)}};
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
  columns.add({"panel", last.extent / width}, column / panel);
  for (const tp::Axis& axis : factors->others) add_plain(axis);
  rows.add({factors->terms.name, factors->padded}, inner);
  columns.add(steps, step);
  columns.add({"lane", width}, column % panel);
  columns.add({"term", intrinsic.terms()}, term);

  std::vector<Stage> before;  // the sum
  if (const std::string* array = equal_array(plan.program, rows.stage)) {
    rows.stage.name = *array;
  } else {
    before.push_back(rows.stage);
  }
  Term value = rows.read(sum.dtype) * columns.read(sum.dtype);
  if (intrinsic.products() == 1) {
    before.push_back(columns.stage);
  } else {
    auto pairs = sum_of_pairs(plan.program, sum, rows, columns, lanes);
    if (!pairs) return use_intrinsic(plan, tiled, *tp::find_intrinsic(kOneGroup), width, lanes);
    std::tie(value, steps.extent) = *pairs;
  }
  if (factors->shift.defined()) {
    before.push_back(start_of(sum, *factors));
    sum.value =
        tp::load(before.back().name, sum.dtype, before.back().updates[0].at) * -factors->shift;
  }
  tp::Update& update = sum.updates[0];
  update.over = factors->others;
  update.over.push_back(steps);
  update.over.push_back({"term", intrinsic.terms()});
  update.value = value;
  tiled.intrinsic = &intrinsic;
  *position = std::move(sum);
  stages.insert(position, std::make_move_iterator(before.begin()),
                std::make_move_iterator(before.end()));
  return true;
}

}  // namespace collage::native
