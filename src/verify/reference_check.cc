#include "verify/reference_check.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "ir/visitor.h"
#include "ops/half.h"
#include "ops/interpreter.h"
#include "verify/check_seed.h"
#include "verify/synthetic.h"

namespace collage {

namespace {

struct Range {
  SyntheticRange values;
  bool zeros;  // a quarter of them
  const char* name;
  std::optional<Ends> ends = std::nullopt;  // where some lie
};
constexpr Range kRanges[] = {{{-1, 1}, false, "inputs between -1 and 1"},
                             {{-0.01f, 0.01f}, false, "inputs between -0.01 and 0.01"},
                             {{-8, 8}, true, "inputs between -8 and 8"},
                             {{-1, 1}, false, "inputs with an outlier", Ends::kOutlier}};
// Under strict accuracy; the same of functions that compute each element by itself, which by
// default may lose a NaN.
constexpr Range kNotFinite = {{-1, 1}, false, "inputs with infinities and NaN", Ends::kNotFinite};
constexpr Range kAllEnds = {
    {-1, 1}, false, "inputs with infinities, NaN and the largest numbers", Ends::kAll};
constexpr Range kLargest = {
    {-1, 1}, false, "inputs with infinities and the largest numbers", Ends::kNumbers};
// Where outputs are silent on those.
constexpr Range kOtherRanges[] = {{{0.1f, 1}, false, "inputs between 0.1 and 1"},
                                  {{0, 100}, false, "inputs between 0 and 100"},
                                  {{-100, 0}, false, "inputs between -100 and 0"}};

// The element-wise function of all inputs of float32 and below; others keep their values.
template <typename Change>
void change_floats(std::vector<Tensor>& inputs, Change&& change) {
  for (Tensor& tensor : inputs) {
    const DType dtype = tensor.dtype();
    if (dtype != DType::kFloat32 && !is_half(dtype)) continue;
    tensor = tensor.clone();
    if (is_half(dtype)) {
      auto* bits = tensor.data<uint16_t>();
      for (int64_t i = 0; i < tensor.size(); ++i)
        bits[i] = float_to_half(change(i, half_to_float(bits[i], dtype)), dtype);
    } else {
      float* data = tensor.data<float>();
      for (int64_t i = 0; i < tensor.size(); ++i) data[i] = change(i, data[i]);
    }
  }
}

// Deterministic, without a period that shapes could have.
uint64_t scrambled(int64_t position) {
  return (static_cast<uint64_t>(position) + 1) * 0x9e3779b97f4a7c15u >> 33;
}

Result<std::vector<Tensor>> inputs_in(const Function& function, const Range& range, uint64_t seed) {
  std::vector<Tensor> inputs = TRY(synthetic_inputs(function, seed, range.values));
  if (range.zeros)
    change_floats(inputs,
                  [](int64_t i, float value) { return scrambled(i) % 4 == 0 ? 0.0f : value; });
  if (range.ends) inputs = TRY(with_ends(function, std::move(inputs), *range.ends, seed));
  return inputs;
}

int64_t count_not_finite(const std::vector<Tensor>& tensors) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors)
    if (is_float(tensor.dtype()))
      for (int64_t i = 0; i < tensor.size(); ++i)
        count += !std::isfinite(tensor.element_as_double(i));
  return count;
}

bool has_variable(const Expr& expr) {
  const std::vector<Expr> nodes = post_order(expr);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Expr& node) { return node->kind() == ExprKind::kVar; });
}

bool differ(const Tensor& a, const Tensor& b) { return !compare_tensors(a, b, Tolerance{}).within; }

}  // namespace

ReferenceCheck::ReferenceCheck(Function function, ReferenceCheckOptions options)
    : function_(std::move(function)), options_(std::move(options)), given_(options_.given.size()) {
  const auto* fields = as<TupleNode>(function_->body);
  const std::vector<Expr> results =
      fields != nullptr ? fields->fields : std::vector<Expr>{function_->body};
  for (const Expr& result : results)
    depends_on_inputs_.insert(depends_on_inputs_.end(), result->type().leaves().size(),
                              has_variable(result));
  for (const std::vector<Tensor>& inputs : options_.given) {
    Sha256 digest;
    for (const Tensor& tensor : inputs) digest.update(tensor.raw(), tensor.bytes());
    given_digests_.push_back(digest.hex());
  }
}

Result<std::span<const Tensor>> ReferenceCheck::timing_inputs() {
  if (timing_inputs_.empty()) timing_inputs_ = TRY(inputs_in(function_, kRanges[0], check_seed()));
  return std::span<const Tensor>(timing_inputs_);
}

Result<ReferenceInputs> ReferenceCheck::ask(std::string name, std::vector<Tensor> inputs) {
  const Stopwatch watch;
  Result<std::vector<Tensor>> expected = interpret(function_, inputs);
  if (!expected) return std::move(expected).status().with_context(name);
  ReferenceInputs asked{std::move(name), std::move(inputs), std::move(expected).value()};
  seconds_ += watch.seconds();
  return asked;
}

Result<std::span<const ReferenceInputs>> ReferenceCheck::seeded() {
  if (seeded_.empty()) TRY(ask_about_ranges());
  return std::span<const ReferenceInputs>(seeded_);
}

Status ReferenceCheck::ask_about_ranges() {
  const Stopwatch watch;
  const auto has_time = [&](double next) {
    return options_.all_ranges || watch.seconds() + next <= options_.seconds;
  };
  double last = 0;
  size_t tried = 0;
  std::vector<ReferenceInputs> answers;
  for (const Range& range : kRanges) {
    if (tried > 0 && !has_time(last)) break;
    const Stopwatch one;
    std::vector<Tensor> inputs;
    if (tried == 0) {
      const std::span<const Tensor> first = TRY(timing_inputs());
      inputs.assign(first.begin(), first.end());
    } else {
      inputs = TRY(inputs_in(function_, range, check_seed() + tried));
    }
    ++tried;
    Result<ReferenceInputs> answer = ask(range.name, std::move(inputs));
    // The reference may have none at the ends: an index, say, that is computed from them.
    if (!answer && !range.ends) return answer.status();
    if (answer) {
      answer->at_ends = range.ends.has_value();
      answers.push_back(std::move(answer).value());
    }
    last = one.seconds();
  }
  tried_all_ranges_ = tried == std::size(kRanges);
  uint64_t seed = check_seed() + tried;
  for (const Range& range : kOtherRanges) {
    const size_t silent_before = silent(answers).size();
    const bool first_of_these = &range == kOtherRanges;
    if (silent_before == 0 || !(first_of_these || has_time(last))) break;
    answers.push_back(TRY(ask(range.name, TRY(inputs_in(function_, range, seed++)))));
    if (silent(answers).size() == silent_before) answers.pop_back();
  }
  // Where only some of these overflow, they lie at the edge of what the model can compute.
  std::vector<int64_t> not_finite;
  for (const ReferenceInputs& answer : answers)
    not_finite.push_back(count_not_finite(answer.expected));
  const int64_t least = *std::min_element(not_finite.begin(), not_finite.end());
  for (size_t i = 0; i < answers.size(); ++i)
    if (not_finite[i] == least) seeded_.push_back(std::move(answers[i]));
  const bool alone = ends_to_check(TRY(inline_calls(function_))) == Ends::kAll;
  if ((is_strict() || alone) && has_time(last)) {
    const Range& range = !alone ? kNotFinite : is_strict() ? kAllEnds : kLargest;
    auto answer = ask(range.name, TRY(inputs_in(function_, range, seed)));
    if (answer) {
      answer->at_ends = true;
      answer->may_lose_nan = !is_strict();
      seeded_.push_back(std::move(answer).value());
    }
  }
  return {};
}

Result<std::span<const ReferenceInputs>> ReferenceCheck::given(size_t position) {
  std::vector<ReferenceInputs>& answer = given_[position];
  if (answer.empty()) answer.push_back(TRY(ask("the inputs given", options_.given[position])));
  return std::span<const ReferenceInputs>(answer);
}

Result<Difference> ReferenceCheck::compare(const ReferenceInputs& asked, size_t output,
                                           const Tensor& actual, const Tolerance& tolerance) {
  const Tensor& expected = asked.expected[output];
  Tolerance own = kept_as(tolerance, expected.dtype());
  own.may_lose_nan |= asked.may_lose_nan;
  Difference plain = compare_tensors(actual, expected, own);
  if (plain.within || plain.judged == 0) return plain;
  const Stopwatch watch;
  if (!asked.errors->has_value())
    asked.errors->emplace(TRY(RoundingErrors::of(function_, asked.inputs)));
  Difference difference =
      TRY((*asked.errors)->compare(output, actual, expected, options_.rounding, own));
  difference.excused = difference.within;
  if (difference.within) difference.wrong = plain.wrong;
  seconds_ += watch.seconds();
  return difference;
}

Result<ProgramError> ReferenceCheck::error_on(const ReferenceInputs& asked, Executor& executor,
                                              const Tolerance& tolerance) {
  std::vector<Tensor> outputs(asked.expected.size());
  const Stopwatch watch;
  TRY(executor.run(asked.inputs, outputs));
  run_seconds_ = watch.seconds();
  ProgramError result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Difference difference = TRY(compare(asked, i, outputs[i], tolerance));
    // Of a few that are next to zero by chance, what they err by as parts of themselves says
    // nothing.
    const bool by_chance =
        difference.excused && difference.wrong <= difference.judged / kChanceOneIn;
    result.error = std::max(result.error, by_chance ? difference.rms_rel : difference.max_rel);
    result.beyond |= difference.excused;
    result.excused |= difference.excused && !by_chance;
    if (!difference.within)
      return collage::error(ErrorCode::kVerification,
                            "on {} (seed {}): output {}: {}, {:.2g} of the largest value like it",
                            asked.name, check_seed(), i, difference.reason, difference.max_rel);
  }
  return result;
}

Result<ProgramError> ReferenceCheck::error(Executor& executor, const Tolerance& tolerance) {
  TRY(seeded());
  ProgramError all;
  // Twice on the first: what differs from run to run may be wrong in the second, which is as fast
  // as later ones.
  for (size_t run = 0; run <= seeded_.size(); ++run) {
    const size_t i = run > 0 ? run - 1 : 0;
    const ProgramError one = TRY(error_on(seeded_[i], executor, tolerance));
    // The first are what kernels were measured with; of others the model may never see the like.
    if (i > 0 && one.beyond) continue;
    all.error = std::max(all.error, one.error);
    all.excused |= one.excused;
  }
  return all;
}

Result<ProgramError> ReferenceCheck::error_on_given(size_t position, Executor& executor,
                                                    const Tolerance& tolerance) {
  return error_on(TRY(given(position))[0], executor, tolerance);
}

std::map<size_t, std::string> ReferenceCheck::silent(
    std::span<const ReferenceInputs> inputs) const {
  std::map<size_t, std::string> found;
  for (size_t output = 0; output < depends_on_inputs_.size(); ++output) {
    if (!depends_on_inputs_[output]) continue;
    std::string reason;
    for (const ReferenceInputs& asked : inputs) {
      if (asked.at_ends) continue;
      reason = proves_nothing(asked.expected[output]);
      if (reason.empty() || differ(asked.expected[output], inputs[0].expected[output])) {
        reason.clear();
        break;
      }
    }
    if (!reason.empty()) found[output] = reason;
  }
  return found;
}

}  // namespace collage
