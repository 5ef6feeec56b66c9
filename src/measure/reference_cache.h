// Results of the reference for functions on seeded inputs, kept for the lifetime of the process: a
// function is measured for each target, at several moments, and evaluating it costs more than
// timing most of its kernels.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "verify/rounding_error.h"

namespace collage {

struct ReferenceResults {
  Function function;  // with seeded constants
  RoundingErrors errors;
  // Results on inputs that hold the ends of the number range; none if the reference is slow or
  // fails there.
  std::optional<RoundingErrors> at_ends;
};

// May be used by any number of threads. Asking a result for tolerances changes it, so that is for
// one thread at a time (turn_to_measure).
class ReferenceCache {
 public:
  // `most_bytes`: of constants, inputs and outputs together. A larger entry is not kept.
  explicit ReferenceCache(double most_bytes) : most_bytes_(most_bytes) {}

  // The one of the process.
  static ReferenceCache& instance();

  // `text`: canonical. Evaluates the reference unless the result is among those kept.
  Result<std::shared_ptr<ReferenceResults>> results_of(const std::string& text);

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<ReferenceResults> results;
    double bytes;
  };
  const double most_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // those asked for last first
  double bytes_ = 0;          // of all of them
};

// Returns a function of that text, with seeded constants.
Result<Function> function_with_seeded_constants(const std::string& text);
// Returns the reference's outputs for inputs at the ends of the number range.
Result<RoundingErrors> on_ends(const Function& function);
// Returns the reference's outputs for seeded inputs: of a few ranges the first that gives outputs
// with enough elements that are neither zero nor NaN.
Result<RoundingErrors> on_synthetic_inputs(const Function& function, uint64_t seed);

}  // namespace collage
