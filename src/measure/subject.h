// Subject: the data that a kernel is tried with and judged by: inputs, in every encoding asked for,
// and the reference's outputs for them. One subject for a function (or a conversion) serves all
// variants.
//
// Inputs are seeded and within what their uses allow (valid indices). If the reference's outputs
// are mostly zeros or NaN, so that agreement would prove little, other data is tried. The tolerance
// of a variant follows from the function, the inputs and what the variant rounds. Some trials use
// inputs at the ends of the number range (TrialInputs::kEnds).
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "measure/guarded_buffer.h"
#include "measure/reference_cache.h"
#include "measure/task.h"

namespace collage {

// How far outputs are from the reference's; the worst output for each field.
struct Agreement {
  double error = 0;            // root mean square, as a part of that of the output
  double of_allowed = 0;       // of an element, as a part of what is allowed for it
  double mean_of_allowed = 0;  // root mean square, as a part of the allowed one
  bool loses_nan = false;      // at the ends a number stands where NaN should
  bool spreads_nan = false;    // … NaN where a number should, or in padding
};

// Inputs of a trial: seeded numbers, or with a few at the ends of the number range.
enum class TrialInputs { kSeeded, kEnds };

class Subject {
 public:
  // `text`: canonical.
  static Result<Subject> of_function(const std::string& text, const CompileOptions& options = {});
  // Accepts what is within 1e-5 of the reference; what roundings change is looked at only where
  // that refuses a kernel, for it takes several evaluations of the reference.
  void judge_quickly() { quickly_ = true; }
  // Without the reference's results: check_outputs looks at padding alone.
  static Result<Subject> unchecked(Function function, const CompileOptions& options);
  bool is_unchecked() const { return expected_.empty(); }
  // A tensor of that type, which changes its encoding.
  static Result<Subject> of_conversion(const TensorType& type, const CompileOptions& options);

  const Function& function() const { return function_; }  // null for a conversion
  const std::vector<TensorType>& inputs() const { return input_types_; }
  const std::vector<TensorType>& outputs() const { return output_types_; }

  Status check_fit(const Variant& variant) const {
    return collage::check_fit(variant, input_types_, output_types_);
  }
  // Read-only; shared by all variants that ask for the same encoding.
  Result<std::shared_ptr<GuardedBuffer>> input(size_t index, const Encoding& encoding,
                                               GuardedBuffer::Side side,
                                               TrialInputs inputs = TrialInputs::kSeeded);
  // Returns whether the variant must be correct at the ends: it computes in the function's own
  // types, and the reference's results are known there.
  bool knows_ends(const Variant& variant) const;
  // Compares raw outputs in the variant's encodings with the reference, the padding of blocked
  // layouts included; the error states what is wrong.
  Result<Agreement> check_outputs(const Variant& variant, const std::vector<GuardedBuffer>& outputs,
                                  TrialInputs inputs = TrialInputs::kSeeded) const;

 private:
  Subject() = default;
  Subject(Function function, const CompileOptions& options);
  Result<Difference> compare(size_t output, const Tensor& actual, const Variant& variant,
                             TrialInputs inputs) const;

  Function function_;
  CompileOptions options_;
  bool quickly_ = false;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<Tensor> inputs_, expected_;
  std::shared_ptr<ReferenceResults> results_;  // null for a conversion, and unchecked
  std::map<std::tuple<size_t, std::string, GuardedBuffer::Side, TrialInputs>,
           std::shared_ptr<GuardedBuffer>>
      encoded_;
};

}  // namespace collage
