// What the reference gives for functions on seeded inputs, kept for as long as the process lives:
// a function is measured for each target, at several moments, and evaluating it costs more than
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
  // On inputs that hold the ends of what numbers can be; none where the reference takes long,
  // or has no answer there.
  std::optional<RoundingErrors> at_ends;
};

// Any number of threads; what it gives is changed by whoever asks for tolerances first, so that is
// for one thread at a time (turn_to_measure).
class ReferenceCache {
 public:
  // `most_bytes`: of constants, inputs and outputs together. What is larger alone is not kept.
  explicit ReferenceCache(double most_bytes) : most_bytes_(most_bytes) {}

  // The one of the process.
  static ReferenceCache& instance();

  // `text`: canonical. Evaluates the reference unless that is among the last that were asked for.
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

// A function of that text, with seeded constants.
Result<Function> function_with_seeded_constants(const std::string& text);
// The reference's outputs where some inputs lie at the ends of what numbers can be.
Result<RoundingErrors> on_ends(const Function& function);
// The reference's outputs for seeded inputs. Of a few ranges the first that gives outputs with
// enough elements that are neither zero nor NaN.
Result<RoundingErrors> on_synthetic_inputs(const Function& function, uint64_t seed);

}  // namespace collage
