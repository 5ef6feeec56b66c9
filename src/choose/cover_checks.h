// Checks of whole covers: each is run with the model's own weights on the inputs of a reference
// check (reference_check.h) before it may be chosen, and what that showed is remembered in the cost
// database. A row is known by the model's structure, the cover's kernels, the constants by value
// and the inputs; timings (choose_cover.h) by the first two alone, so that a retrained model is
// checked, not timed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose/cover_search.h"
#include "cost/row_values.h"
#include "verify/reference_check.h"

namespace collage {

// Of the largest error that the user allows, what a cover may use on these inputs: others may err
// more.
inline constexpr double kOfMaxError = 0.9;

// What running a cover showed.
using CoverCheck = CheckRow;

// Why a cover may not be chosen; empty where it may. `max_error`: 0, or what the user allows.
std::string refusal(const CoverCheck& check, double max_error);

struct CheckedModel {
  std::string structure;  // identifies it
  std::string context;    // machine and versions
  Function function;      // with the constants
  std::vector<std::string> output_names;
};

class CoverChecks {
 public:
  // The reference check and the database must outlive it.
  CoverChecks(ReferenceCheck& reference, CostDatabase& database, CheckedModel model)
      : reference_(reference), database_(database), model_(std::move(model)) {}

  ReferenceCheck& reference() { return reference_; }
  const std::string& constants();  // identifies their values
  // What is known of a cover on all of the reference check's inputs.
  std::optional<CoverCheck> known(const NamedCover& cover);
  // The same, run on those of which nothing is known. Fails where the reference does.
  Result<CoverCheck> check(const NamedCover& cover, Executor& executor);
  // Of one that could not even be made, for these constants.
  void remember_failure(const NamedCover& cover, const std::string& failure);
  void remember_culprits(const NamedCover& cover, const std::vector<std::string>& culprits);

 private:
  // Seeded inputs, then those given, one by one.
  size_t groups() const { return 1 + reference_.given_count(); }
  std::string row_text(const NamedCover& cover, size_t group);
  std::optional<CoverCheck> find(const NamedCover& cover, size_t group);
  void put(const NamedCover& cover, size_t group, const CoverCheck& check);
  // Keeps what it finds, but for what the machine lacked.
  Result<CoverCheck> run(const NamedCover& cover, size_t group, Executor& executor);

  ReferenceCheck& reference_;
  CostDatabase& database_;
  const CheckedModel model_;
  std::string constants_;
};

}  // namespace collage
