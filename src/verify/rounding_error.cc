#include "verify/rounding_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "ops/interpreter.h"
#include "ops/quantised.h"
#include "tensor_program/call.h"
#include "tensor_program/evaluate.h"
#include "verify/magnitudes.h"
#include "verify/noise.h"
#include "verify/operator_rounding.h"
#include "verify/quantisation_steps.h"
#include "verify/tile_rounding.h"

namespace collage {

namespace {

// By how much kernels may exceed what was modelled: how sums are ordered and functions approximated
// is the library's choice; a rounding that a variant states is known better.
constexpr double kArithmeticMargin = 3, kStatedMargin = 2;
// Of a whole quantised model: through many layers a few neighbours change as much as all would.
constexpr double kQuantisedMargin = 2;
// The largest error of many may be so many times their root mean square.
constexpr double kPeak = 4;
// However exact the model takes a function to be: in units of the type's rounding.
constexpr double kFloor = 4;
// Beyond a quarter of the result nothing would be left of it.
constexpr double kMost = 0.25;
// Where float32's roundings move elements by such a part of their scale the function is chaotic: no
// draw of noise is near another, and neither is one honest program's result.
constexpr double kChaotic = 1.0 / 16;
// Where they move them by such a part a gate may open by chance, and moves do not scale: in most
// draws all moves little, in some by much, however little noise there is.
constexpr double kAmplified = 1e-3;
// Arithmetic of a function that is evaluated in no time.
constexpr double kCheap = 1e7;
constexpr int kFirstDraws = 1, kFirstCheapDraws = 4, kMostDraws = 8, kMostCheapDraws = 64;
// Elements that one thread is enough for.
constexpr int64_t kFewElements = 8192;
// Of each group, elements that tell how far it typically moves.
constexpr int64_t kTypicalOf = 1 << 14;
// More elements are not wrong by chance: so many, and one in kChanceOneIn.
constexpr int64_t kChance = 8;

bool holds_halves(const Function& function) {
  for (const Expr& expr : post_order(function->body))
    for (const TensorType& leaf : expr->type().leaves())
      if (leaf.dtype == DType::kFloat16 || leaf.dtype == DType::kBFloat16) return true;
  return false;
}

// What a noisy result becomes where the function jumps.
Result<Tensor> without_jumps(const Tensor& noisy, const Tensor& clean, Continuity continuity) {
  if (!is_float(clean.dtype()) || continuity == Continuity::kSteps ||
      clean.dtype() != DType::kFloat32)
    return clean;
  constexpr float kJump = 1.0f / 16;
  const Magnitudes sizes(clean);
  Tensor result = noisy.clone();
  const float* of_clean = clean.data<float>();
  float* of_result = result.data<float>();
  const int64_t count = clean.size();
#pragma omp parallel for if (count > kFewElements)
  for (int64_t i = 0; i < count; ++i) {
    const float a = of_result[i], b = of_clean[i];
    const auto size = static_cast<float>(sizes.scale(static_cast<double>(b)));
    if (!(std::abs(a - b) <= kJump * (std::abs(b) + size))) of_result[i] = b;
  }
  return result;
}

// A call of a tensor program, whose operations err by `times` what each rounds.
Result<std::vector<Tensor>> evaluate_program(const CallNode& call,
                                             std::span<const Tensor> arguments, double times,
                                             uint64_t seed) {
  const auto relative = [times](tensor_program::TermOp op, DType dtype) {
    return times * operation_rounding(op, dtype);
  };
  return tensor_program::evaluate(TRY(tensor_program::program_of_call(call)), arguments,
                                  {relative, seed});
}

// The root of the sum of squares, of numbers that are not negative.
inline double combined(double a, double b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const double squares = a * a + b * b;
  return squares > 1e-290 && squares < 1e290 ? std::sqrt(squares) : std::hypot(a, b);
}

// What a kernel's output of that type may err by besides.
Tolerance least_tolerance(DType dtype) {
  const double unit = unit_roundoff(dtype);
  return {.of_scale = kFloor * unit, .relative = kFloor * unit};
}

// What an element's error is a part of: of elements like it the largest.
double scale_of(const Magnitudes& magnitudes, double value) {
  const double scale = magnitudes.scale(value);
  return scale > 0 ? scale : 1;
}

// How far elements of each group move, typically, as a part of their scale.
std::vector<double> of_groups(const Tensor& expected, const Magnitudes& magnitudes,
                              const std::vector<double>& moved, bool quantised) {
  std::vector<std::vector<double>> members(magnitudes.groups());
  const bool all_zero = magnitudes.largest() == 0;
  // Evenly spaced ones of a large group; where few move, all.
  std::vector<int64_t> every, seen(magnitudes.groups(), 0);
  for (const int64_t count : magnitudes.group_counts())
    every.push_back(quantised ? 1 : std::max<int64_t>(1, count / kTypicalOf));
  with_numbers(expected, [&](const auto& number) {
    for (int64_t i = 0, n = expected.size(); i < n; ++i) {
      const double b = number(i), by = moved[static_cast<size_t>(i)];
      // Zeros stay what they are for reasons of their own.
      if (!std::isfinite(b) || !std::isfinite(by) || (b == 0 && !all_zero)) continue;
      const size_t group = magnitudes.group(b);
      if (--seen[group] >= 0) continue;
      seen[group] = every[group] - 1;
      members[group].push_back(by / scale_of(magnitudes, b));
    }
  });
  std::vector<double> typical;
  for (std::vector<double>& group : members) {
    double size = 0;
    if (group.empty()) {
    } else if (quantised) {  // few move, by much
      for (const double by : group) size = std::hypot(size, by);
      size = std::max(size / std::sqrt(static_cast<double>(group.size())),
                      *std::max_element(group.begin(), group.end()) / kPeak);
    } else {
      const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
      std::nth_element(group.begin(), middle, group.end());
      size = *middle;
    }
    typical.push_back(size);
  }
  return typical;
}

}  // namespace

Result<RoundingErrors> RoundingErrors::of(const Function& function, std::vector<Tensor> inputs) {
  RoundingErrors errors(TRY(inline_calls(function)), std::move(inputs));
  errors.expected_ =
      TRY(interpret(errors.function_, errors.inputs_,
                    [&errors](const CallNode& call,
                              std::span<const Tensor> arguments) -> Result<std::vector<Tensor>> {
                      std::vector<Tensor> results = TRY(evaluate_call(call, arguments));
                      if (call.op != nullptr && continuity(call) != Continuity::kContinuous)
                        errors.jumping_[&call].push_back(results);
                      return results;
                    }));
  errors.quantises_ = errors.decisions_ = quantises(errors.function_);
  errors.halves_ = holds_halves(errors.function_);
  double work = 0;
  for (const Expr& expr : post_order(errors.function_->body))
    if (const auto* call = as<CallNode>(expr); call != nullptr && call->op != nullptr) {
      work += result_elements(*call) * summands(*call);
      if (multiplies(*call))
        errors.most_products_ = std::max(errors.most_products_, summands(*call));
    }
  const bool cheap = work <= kCheap;
  errors.draws_ = cheap ? kFirstCheapDraws : kFirstDraws;
  errors.most_draws_ = cheap ? kMostCheapDraws : kMostDraws;
  return errors;
}

double RoundingErrors::amplitude(const Source& source) const {
  if (source.kind == Kind::kQuantisation) return 1;
  if (source.kind == Kind::kArithmetic || source.kind == Kind::kDecisions)
    return halves_ ? 2 : 4;           // times what rounding errs by
  return halves_ ? 0x1p-6 : 0x1p-14;  // largest error of one rounding
}

Result<std::vector<Tensor>> RoundingErrors::evaluate_with_noise(const Source& source,
                                                                double amplitude, uint64_t seed) {
  if (source.kind == Kind::kQuantisation)
    return interpret_with_moved_steps(function_, inputs_, seed);
  uint64_t tensor = seed << 32;
  const double stated = rms_roundoff(amplitude);
  const bool decisions = source.kind == Kind::kDecisions;
  const bool arithmetic = source.kind == Kind::kArithmetic || decisions;
  const auto noisy = [&](const Tensor& value, double relative,
                         double of_largest = 0) -> Result<Tensor> {
    return with_noise(value, {relative, of_largest, 0, ++tensor});
  };
  std::map<const CallNode*, size_t> turns;  // of calls in loops
  std::vector<Tensor> inputs = inputs_;
  if (source.kind == Kind::kTensors)
    for (Tensor& input : inputs) input = TRY(noisy(input, stated));
  const auto evaluate = [&](const CallNode& call,
                            std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
    if (call.op == nullptr || call.op->is_view) return evaluate_call(call, given);
    std::vector<Tensor> arguments(given.begin(), given.end());
    const OperatorRounding own = operator_rounding(call);
    const bool factors = multiplies(call);
    const bool by_operation = arithmetic && call.op->name == tensor_program::kCallOp;
    const bool tiled = source.tile > 0 && can_be_tiled(call);
    switch (source.kind) {
      case Kind::kArithmetic:
      case Kind::kDecisions: {
        if (by_operation || tiled) break;
        const size_t count =
            reads_all(call) ? arguments.size() : std::min<size_t>(1, arguments.size());
        for (size_t i = 0; i < count; ++i)
          arguments[i] = TRY(noisy(arguments[i], amplitude * own.operands));
        break;
      }
      case Kind::kFactors:
      case Kind::kFixedPoint:
        if (!factors) break;
        for (Tensor& argument : arguments)
          argument = source.kind == Kind::kFactors
                         ? TRY(noisy(argument, stated))
                         : TRY(noisy(argument, 0, amplitude / std::sqrt(3.0)));
        break;
      case Kind::kTensors:
        if (!factors) break;
        for (size_t i = 0; i < std::min(arguments.size(), call.args.size()); ++i)
          if (call.args[i]->kind() == ExprKind::kConstant)
            arguments[i] = TRY(noisy(arguments[i], stated));
        break;
      case Kind::kQuantisation:
        break;  // above
    }
    std::vector<Tensor> results =
        TRY(by_operation ? evaluate_program(call, arguments, amplitude, ++tensor)
                         : evaluate_call(call, arguments));
    if (source.kind == Kind::kFactors && factors)
      results[0] = TRY(with_nothing_infinite(results[0]));
    if (tiled)
      results[0] =
          TRY(with_noise_of_sizes(results[0], TRY(sizes_of_tiles(call, arguments, source.tile)),
                                  amplitude * source.sums * own.operands, ++tensor));
    // A kernel may add up products of the real numbers that integers stand for.
    if (arithmetic && is_quantised_product(call.op->name))
      results[0] =
          TRY(with_noise_of_sizes(results[0], TRY(typical_products(call, arguments)),
                                  amplitude * own.operands * std::sqrt(summands(call)), ++tensor));
    double relative = 0, absolute = 0;
    if (arithmetic && !by_operation) {
      relative = amplitude * own.results;
      absolute = amplitude * own.absolute;
    }
    if (source.kind == Kind::kTensors && own.results > 0) relative = stated;
    // Kernels may take them for zero.
    const double of_denormals = arithmetic ? amplitude : 0;
    if (relative > 0)
      for (Tensor& result : results)
        result = TRY(with_noise(result, {relative, 0, absolute, ++tensor, of_denormals}));
    const auto* clean = decisions ? nullptr : clean_results(call, turns[&call]++);
    for (size_t i = 0; clean != nullptr && i < results.size(); ++i)
      results[i] = TRY(without_jumps(results[i], (*clean)[i], continuity(call)));
    return results;
  };
  return interpret(function_, inputs, evaluate);
}

Status RoundingErrors::draw(const Source& source, Moves& moves) {
  const double size = amplitude(source), more = source.tile == 0 ? source.sums : 1;
  const std::vector<Tensor> noisy =
      TRY(evaluate_with_noise(source, size * more, static_cast<uint64_t>(moves.draws) + 1));
  const auto before = static_cast<double>(moves.draws);
  const double old_part = std::sqrt(before / (before + 1)), new_part = std::sqrt(1 / (before + 1));
  for (size_t o = 0; o < noisy.size(); ++o) {
    const Tensor& expected = expected_[o];
    const bool quantised = source.kind == Kind::kQuantisation,
               decided = source.kind == Kind::kDecisions;
    if (!is_float(expected.dtype()) && !quantised && !decided) continue;
    std::vector<double>&of = moves.of[o], &most = moves.most[o];
    const int64_t count = expected.size();
    // NaN marks what may be anything (with_noise_of_sizes, with_nothing_infinite).
    const bool marks = source.tile > 0 || source.kind == Kind::kFactors;
    const double part = new_part / size;
    with_numbers(noisy[o], expected, [&](const auto& noisy_number, const auto& number) {
#pragma omp parallel for if (count > kFewElements)
      for (int64_t i = 0; i < count; ++i) {
        const double a = noisy_number(i), b = number(i);
        double& by = of[static_cast<size_t>(i)];
        if (marks && std::isnan(a) && !std::isnan(b)) {
          by = std::numeric_limits<double>::infinity();
          continue;
        }
        const double moved = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : 0;
        if (before < kMostDraws)
          most[static_cast<size_t>(i)] = std::max(most[static_cast<size_t>(i)], moved);
        by = quantised ? std::max(by, moved)
             : decided ? std::max(by, moved / kPeak)
                       : combined(by * old_part, moved * part);
      }
    });
  }
  ++moves.draws;
  return {};
}

Result<const RoundingErrors::Moves*> RoundingErrors::moves(const Source& source) {
  Moves& moves = known_[source];
  if (moves.draws == 0)
    for (const Tensor& output : expected_)
      for (auto* moved : {&moves.of, &moves.most})
        moved->emplace_back(static_cast<size_t>(output.size()), 0);
  // Which integers become their neighbours is chance in every draw: more of them tell no more.
  const int draws =
      source.kind == Kind::kQuantisation ? std::min(draws_, kFirstCheapDraws) : draws_;
  while (moves.draws < draws) TRY(draw(source, moves));
  return &moves;
}

std::vector<RoundingErrors::Part> RoundingErrors::parts_of(const Rounding& rounding) const {
  std::vector<Part> parts;
  const auto add = [&](Kind kind, double times) {
    if (times > 0) parts.push_back({{kind}, times});
  };
  // What a rounding to bfloat16 leaves is far above float32's.
  if (rounding.tensors == 0)
    parts.push_back({{Kind::kArithmetic, tile_side(rounding), rounding.sums}, kArithmeticMargin});
  add(Kind::kFactors, kStatedMargin * rounding.factors);
  add(Kind::kFixedPoint, kStatedMargin * rounding.fixed_point);
  add(Kind::kTensors, kStatedMargin * rounding.tensors);
  if (quantises_) add(Kind::kQuantisation, 1);
  return parts;
}

Result<RoundingErrors::Movement> RoundingErrors::moved(size_t output, const Rounding& rounding) {
  for (const Known& known : moved_)
    if (known.output == output && known.rounding == rounding) return known.movement;
  const Tensor& expected = expected_[output];
  const int64_t count = expected.size();
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  auto all = std::make_shared<std::vector<double>>(at(count), 0);
  double* by = all->data();
  for (const Part& part : parts_of(rounding)) {
    const std::vector<double>& of = TRY(moves(part.source))->of[output];
#pragma omp parallel for if (count > kFewElements)
    for (int64_t i = 0; i < count; ++i) by[i] = combined(by[i], part.times * of[at(i)]);
  }
  const Magnitudes magnitudes(expected);
  std::vector<double> typical = of_groups(expected, magnitudes, *all, quantises_);
  if (rounding.tensors == 0 && !quantises_)
    for (double& part : typical) {
      amplified_ |= !halves_ && part > kAmplified;
      if (part > kChaotic) part = std::max(part, 1.0);
    }
  with_numbers(expected, [&](const auto& number) {
#pragma omp parallel for if (count > kFewElements)
    for (int64_t i = 0; i < count; ++i) {
      const double b = number(i);
      if (std::isfinite(b))
        by[i] = std::max(by[i], typical[magnitudes.group(b)] * scale_of(magnitudes, b));
    }
  });
  for (const Part& part : parts_of(rounding)) {
    if (!amplified_ || part.source.kind != Kind::kArithmetic) continue;
    const std::vector<double>& most = TRY(moves(part.source))->most[output];
    for (int64_t i = 0; i < count; ++i) by[i] = std::max(by[i], most[at(i)]);
  }
  // A decision excuses what becomes of it alone.
  if (decisions_) {
    const std::vector<double>& of = TRY(moves({Kind::kDecisions}))->of[output];
    for (int64_t i = 0; i < count; ++i) by[i] = combined(by[i], of[at(i)]);
  }
  if (moved_.size() == kMostKnown) moved_.erase(moved_.begin());
  moved_.push_back({output, rounding, std::move(all)});
  return moved_.back().movement;
}

Result<std::vector<Tolerance>> RoundingErrors::tolerances(const Rounding& rounding) {
  std::vector<Tolerance> result;
  for (size_t o = 0; o < expected_.size(); ++o) result.push_back(TRY(tolerance(o, rounding)));
  return result;
}

Result<Tolerance> RoundingErrors::tolerance(size_t output, const Rounding& rounding) {
  const DType dtype = expected_[output].dtype();
  Tolerance tolerance;
  if (is_float(dtype)) {
    tolerance = least_tolerance(dtype);
    if (!rounding.none()) tolerance.most = kMost;
  } else if (quantises_) {
    tolerance.steps = 1;  // either neighbour of a middle
  } else if (!decisions_) {
    return tolerance;
  }
  tolerance.moved = TRY(moved(output, rounding));
  tolerance.of_moved = kPeak;
  tolerance.mean = 1 / kPeak;
  return tolerance;
}

Result<Difference> RoundingErrors::compare(size_t output, const Tensor& actual,
                                           const Rounding& rounding) {
  return while_in_doubt([&]() -> Result<Difference> {
    return compare_tensors(actual, expected_[output], TRY(tolerance(output, rounding)));
  });
}

Result<Difference> RoundingErrors::compare(size_t output, const Tensor& actual,
                                           const Tensor& expected, const Rounding& rounding,
                                           Tolerance tolerance) {
  return while_in_doubt([&]() -> Result<Difference> {
    tolerance.moved = TRY(moved(output, rounding));
    tolerance.of_moved = quantises_ ? kQuantisedMargin * kPeak : kPeak;
    tolerance.mean = std::min(tolerance.mean, 1 / kPeak);
    if (quantises_) tolerance.steps = std::max(tolerance.steps, 1.0);
    return compare_tensors(actual, expected, tolerance);
  });
}

Result<Difference> RoundingErrors::compare_at_ends(size_t output, const Tensor& actual,
                                                   const Rounding& rounding) {
  const Tensor& expected = expected_[output];
  Tolerance plain = model_tolerance();
  plain.steps = quantises_ ? 1 : 0;
  plain.may_lose_nan = true;
  plain.may_spread_nan = tile_side(rounding) == 0;  // beyond its tile it does not
  // Each product of a sum may be taken for zero if it is less than any normal number.
  if (expected.dtype() == DType::kFloat32)
    plain.absolute = most_products_ * static_cast<double>(std::numeric_limits<float>::min());
  plain = kept_as(plain, expected.dtype());
  const Difference difference = compare_tensors(actual, expected, plain);
  if (difference.within || difference.judged == 0) return difference;
  return compare(output, actual, expected, rounding, plain);
}

Result<Difference> RoundingErrors::while_in_doubt(
    const std::function<Result<Difference>()>& compare) {
  while (true) {
    Difference difference = TRY(compare());
    excuse_unlucky(difference);
    const bool numbers =
        std::isfinite(difference.worst_actual) && std::isfinite(difference.worst_expected);
    const bool few = difference.wrong <= kChance + difference.judged / kChanceOneIn;
    const bool by_chance = numbers && difference.judged > 0 && (few || amplified_);
    const bool undecided = !decisions_ && !jumping_.empty();
    if (difference.within || !by_chance || (!undecided && draws_ >= most_draws_)) return difference;
    if (!undecided) draws_ = std::min(most_draws_, 4 * draws_);
    decisions_ |= undecided;
    moved_.clear();
  }
}

}  // namespace collage
