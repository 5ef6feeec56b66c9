// What identifies a measurement, beside the canonical text of what was measured: machine, threads,
// versions. docs/cost-model.md says why each part is there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "measure/cost.h"

namespace collage {

// Model name and instruction set of this machine's processor.
std::string processor_name();

class CostKeys {
 public:
  // `processor`: this machine's, or that of the one that costs are of.
  CostKeys(int threads, CacheState cache, const std::string& processor = processor_name());

  const std::string& processor() const { return processor_; }  // and threads
  // Of timings and checks of whole programs: processor, threads, this build of all that makes, runs
  // and judges them, versions of all backends.
  std::string program_context() const;
  // Digits that stand for all of that: a kind of machine with a build of Collage.
  std::string fingerprint() const;
  std::string conversion_context(const std::set<std::string>& converters) const;
  std::string function_context(const Target& target, RoundingLimit rounding) const;
  // Of subjects that killed a worker on this processor, with this version of the backend.
  static std::string quarantine_context(const std::string& target);
  // A conversion's text.
  static std::string conversion_text(const TensorType& type, const Encoding& from,
                                     const Encoding& to);

 private:
  std::string processor_, machine_;  // the latter with the cache state
};

// The version of the library behind a backend: the backend's own without the hash of our sources.
std::string library_version(const std::string& backend);
// Whether a version of the backend, of any build of our sources, is of that library.
bool is_of_library(std::string_view version, const std::string& backend);

// Whether a key's context, of lines, is of this build's judges (backend/fingerprint.h).
bool is_judged_here(const std::vector<std::string>& lines);

}  // namespace collage
