#include "measure/reference_cache.h"

#include <algorithm>
#include <optional>

#include "ir/text_parser.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "verify/check_seed.h"
#include "verify/synthetic.h"

namespace collage {

namespace {

bool informative(const std::vector<Tensor>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Tensor& output) { return proves_nothing(output).empty(); });
}

}  // namespace

Result<Function> function_with_seeded_constants(const std::string& text) {
  uint64_t seed = 1;
  ParseOptions options;
  options.constant = [&seed](const TensorType& type, size_t) {
    return synthetic_constant(type, seed++);
  };
  const Function parsed = TRY(parse_function(text, options));
  return with_quantised_weights(TRY(with_usable_integers(parsed)));
}

Result<RoundingErrors> on_synthetic_inputs(const Function& function, uint64_t seed) {
  constexpr SyntheticRange kRanges[] = {{-1, 1}, {0.1f, 1}, {-4, 4}};
  std::optional<RoundingErrors> first;
  for (const SyntheticRange& range : kRanges) {
    RoundingErrors errors =
        TRY(RoundingErrors::of(function, TRY(synthetic_inputs(function, seed, range))));
    if (informative(errors.expected())) return errors;
    if (!first) first = std::move(errors);
  }
  return std::move(*first);
}

Result<RoundingErrors> on_ends(const Function& function) {
  const uint64_t seed = check_seed();
  const Function flat = TRY(inline_calls(function));
  return RoundingErrors::of(
      flat, TRY(with_ends(flat, TRY(synthetic_inputs(flat, seed + 1)), ends_to_check(flat), seed)));
}

ReferenceCache& ReferenceCache::instance() {
  static auto* cache = new ReferenceCache(256 << 20);
  return *cache;
}

Result<std::shared_ptr<ReferenceResults>> ReferenceCache::results_of(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.text == text; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
      return known->results;
    }
  }
  Function function = TRY(function_with_seeded_constants(text));
  // Whole models are checked at some ends too (verify/reference_check.h).
  constexpr double kMostWork = 1e9;  // multiplications and additions
  RoundingErrors errors = TRY(on_synthetic_inputs(function, check_seed()));
  std::optional<RoundingErrors> at_ends;
  if (function_flops(function) <= kMostWork)
    if (Result<RoundingErrors> known = on_ends(function)) at_ends = std::move(known).value();
  const double bytes = function_bytes(function);
  auto results = std::make_shared<ReferenceResults>(
      ReferenceResults{std::move(function), std::move(errors), std::move(at_ends)});
  const std::lock_guard lock(mutex_);
  entries_.push_front({text, results, bytes});
  bytes_ += bytes;
  for (; bytes_ > most_bytes_; entries_.pop_back()) bytes_ -= entries_.back().bytes;
  return results;
}

}  // namespace collage
