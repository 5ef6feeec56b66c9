#include "verify/rounding_error.h"

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "ops/interpreter.h"
#include "tensor_program/call.h"
#include "tensor_program/evaluate.h"
#include "verify/noise.h"
#include "verify/operator_rounding.h"
#include "verify/quanta.h"

namespace collage {

namespace {

// By how much kernels may exceed what was modelled: how sums are ordered and functions approximated
// is the library's choice; a rounding that a variant states is known better.
constexpr double kArithmeticMargin = 3, kStatedMargin = 2;
// The largest error of many is at least so many times their root mean square.
constexpr double kLeastPeak = 4;
// However exact the model takes a function to be: in units of the type's rounding.
constexpr double kFloor = 4, kMeanFloor = 1;
// Beyond a quarter of the result nothing would be left of it.
constexpr double kMost = 0.25;
// Of what a few elements say about their root mean square.
constexpr double kFewElements = 2;

bool holds_halves(const Function& function) {
  for (const Expr& expr : post_order(function->body))
    for (const TensorType& leaf : expr->type().leaves())
      if (leaf.dtype == DType::kFloat16 || leaf.dtype == DType::kBFloat16) return true;
  return false;
}

double rms_of(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return 0;
  double squares = 0;
  const int64_t count = tensor.size();
  for (int64_t i = 0; i < count; ++i)
    if (const double value = tensor.element_as_double(i); std::isfinite(value))
      squares += value * value;
  return std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, count)));
}

// What a noisy result becomes where the function jumps.
Result<Tensor> without_jumps(const Tensor& noisy, const Tensor& clean, Continuity continuity) {
  if (!is_float(clean.dtype()) || continuity == Continuity::kSteps ||
      clean.dtype() != DType::kFloat32)
    return clean;
  constexpr float kJump = 1.0f / 16;
  const auto size = static_cast<float>(rms_of(clean));
  Tensor result = noisy.clone();
  for (int64_t i = 0, n = clean.size(); i < n; ++i) {
    const float a = noisy.data<float>()[i], b = clean.data<float>()[i];
    if (!(std::abs(a - b) <= kJump * (std::abs(b) + size))) result.data<float>()[i] = b;
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

}  // namespace

Result<RoundingErrors> RoundingErrors::of(const Function& function, std::vector<Tensor> inputs) {
  RoundingErrors errors(TRY(inline_calls(function)), std::move(inputs));
  errors.expected_ =
      TRY(interpret(errors.function_, errors.inputs_,
                    [&errors](const CallNode& call,
                              std::span<const Tensor> arguments) -> Result<std::vector<Tensor>> {
                      std::vector<Tensor> results = TRY(evaluate_call(call, arguments));
                      if (call.op != nullptr && continuity(call) != Continuity::kContinuous)
                        errors.jumping_[&call] = results;
                      return results;
                    }));
  for (const Tensor& output : errors.expected_) errors.rms_.push_back(rms_of(output));
  errors.quantises_ = quantises(errors.function_);
  return errors;
}

double RoundingErrors::amplitude(Source source) const {
  if (source == Source::kQuanta) return 1;
  const bool halves = holds_halves(function_);
  if (source == Source::kArithmetic) return halves ? 2 : 64;  // times what rounding errs by
  return halves ? 0x1p-6 : 0x1p-14;                           // largest error of one rounding
}

int RoundingErrors::draws() const {
  constexpr double kMany = 16, kExpensive = 1e9;
  double fewest = kMany, flops = 0;
  for (const Expr& expr : post_order(function_->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || operator_rounding(*call).results == 0) continue;
    const double elements = result_elements(*call);
    if (elements > 0) fewest = std::min(fewest, elements);
    flops += elements * summands(*call);
  }
  return fewest >= kMany ? 1 : flops > kExpensive ? 2 : 4;
}

Result<std::vector<Tensor>> RoundingErrors::evaluate_with_noise(Source source, double amplitude,
                                                                uint64_t seed) {
  if (source == Source::kQuanta) return interpret_with_neighbours(function_, inputs_, seed);
  uint64_t tensor = seed << 32;
  const double stated = rms_roundoff(amplitude);
  const auto noisy = [&](const Tensor& value, double relative,
                         double of_largest = 0) -> Result<Tensor> {
    return with_noise(value, {relative, of_largest, ++tensor});
  };
  std::vector<Tensor> inputs = inputs_;
  if (source == Source::kTensors)
    for (Tensor& input : inputs) input = TRY(noisy(input, stated));
  const auto evaluate = [&](const CallNode& call,
                            std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
    if (call.op == nullptr || call.op->is_view) return evaluate_call(call, given);
    std::vector<Tensor> arguments(given.begin(), given.end());
    const OperatorRounding own = operator_rounding(call);
    const bool factors = multiplies(call);
    const bool by_operation =
        source == Source::kArithmetic && call.op->name == tensor_program::kCallOp;
    switch (source) {
      case Source::kArithmetic: {
        if (by_operation) break;
        const size_t count =
            reads_all(call) ? arguments.size() : std::min<size_t>(1, arguments.size());
        for (size_t i = 0; i < count; ++i)
          arguments[i] = TRY(noisy(arguments[i], amplitude * own.operands));
        break;
      }
      case Source::kFactors:
      case Source::kFixedPoint:
        if (!factors) break;
        for (Tensor& argument : arguments)
          argument = source == Source::kFactors
                         ? TRY(noisy(argument, stated))
                         : TRY(noisy(argument, 0, amplitude / std::sqrt(3.0)));
        break;
      case Source::kTensors:
        if (!factors) break;
        for (size_t i = 0; i < std::min(arguments.size(), call.args.size()); ++i)
          if (call.args[i]->kind() == ExprKind::kConstant)
            arguments[i] = TRY(noisy(arguments[i], stated));
        break;
      case Source::kQuanta:
        break;  // above
    }
    std::vector<Tensor> results =
        TRY(by_operation ? evaluate_program(call, arguments, amplitude, ++tensor)
                         : evaluate_call(call, arguments));
    double relative = 0;
    if (source == Source::kArithmetic && !by_operation) relative = amplitude * own.results;
    if (source == Source::kTensors && own.results > 0) relative = stated;
    if (relative > 0)
      for (Tensor& result : results) result = TRY(noisy(result, relative));
    if (const auto clean = jumping_.find(&call); clean != jumping_.end())
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = TRY(without_jumps(results[i], clean->second[i], continuity(call)));
    return results;
  };
  return interpret(function_, inputs, evaluate);
}

Result<const std::vector<RoundingErrors::Deviation>*> RoundingErrors::deviations(Source source) {
  const auto known = known_.find(static_cast<int>(source));
  if (known != known_.end()) return &known->second;
  std::vector<Deviation> all(expected_.size());
  const double size = amplitude(source);
  for (int draw = 0, most = draws(); draw < most; ++draw) {
    const std::vector<Tensor> noisy =
        TRY(evaluate_with_noise(source, size, static_cast<uint64_t>(draw) + 1));
    for (size_t o = 0; o < noisy.size(); ++o) {
      const bool real = is_float(expected_[o].dtype());
      if (!real && source != Source::kQuanta) continue;
      const auto element = [real](const Tensor& values, int64_t i) {
        return real ? values.element_as_double(i) : static_cast<double>(values.element_as_int64(i));
      };
      Deviation& deviation = all[o];
      for (int64_t i = 0, n = noisy[o].size(); i < n; ++i) {
        const double b = element(expected_[o], i);
        const double moved = std::abs(element(noisy[o], i) - b) / size;
        if (!std::isfinite(moved)) continue;
        deviation.squares += moved * moved;
        ++deviation.count;
        const double scale = rms_[o] > 0 ? 1 + std::abs(b) / rms_[o] : 1;
        deviation.peak = std::max(deviation.peak, moved / scale);
      }
    }
  }
  return &(known_[static_cast<int>(source)] = std::move(all));
}

Result<std::vector<Tolerance>> RoundingErrors::tolerances(const Rounding& rounding) {
  struct Part {
    Source source;
    double times;
  };
  const Part parts[] = {{Source::kArithmetic, kArithmeticMargin * rounding.sums},
                        {Source::kFactors, kStatedMargin * rounding.factors},
                        {Source::kFixedPoint, kStatedMargin * rounding.fixed_point},
                        {Source::kTensors, kStatedMargin * rounding.tensors},
                        {Source::kQuanta, quantises_ ? 1.0 : 0}};
  // What a rounding to bfloat16 leaves is far above float32's.
  const bool arithmetic_counts = rounding.tensors == 0;
  std::vector<Tolerance> result(expected_.size());
  std::vector<double> squares(expected_.size(), 0), few(expected_.size(), 0),
      peaks(expected_.size(), 0);
  for (const Part& part : parts) {
    if (part.times == 0 || (part.source == Source::kArithmetic && !arithmetic_counts)) continue;
    const std::vector<Deviation>& deviations_of = *TRY(deviations(part.source));
    for (size_t o = 0; o < result.size(); ++o) {
      const Deviation& d = deviations_of[o];
      const double count = std::max(1.0, d.count);
      squares[o] += part.times * part.times * d.squares / count;
      peaks[o] += part.times * part.times * d.peak * d.peak;
      few[o] += kFewElements * kFewElements * part.times * part.times * d.peak * d.peak / count;
    }
  }
  for (size_t o = 0; o < result.size(); ++o) {
    const double mean = std::sqrt(squares[o] + few[o]);
    Tolerance& tolerance = result[o];
    if (!is_float(expected_[o].dtype())) {
      tolerance.quanta = std::sqrt(peaks[o]);
      tolerance.mean = mean;
      continue;
    }
    const double unit = unit_roundoff(expected_[o].dtype());
    const double largest = std::max(kLeastPeak * std::sqrt(squares[o]), std::sqrt(peaks[o]));
    tolerance.absolute = largest + kFloor * unit * rms_[o];
    tolerance.relative = kFloor * unit + (rms_[o] > 0 ? largest / rms_[o] : 0);
    tolerance.mean = mean + kMeanFloor * unit * rms_[o];
    if (!rounding.none()) {
      tolerance.absolute = std::min(tolerance.absolute, kMost * rms_[o]);
      tolerance.relative = std::min(tolerance.relative, kMost);
      tolerance.mean = std::min(tolerance.mean, kMost * rms_[o]);
    }
  }
  return result;
}

}  // namespace collage
