// Subject: what a kernel is tried with and judged by: inputs, in every encoding asked for, and the
// reference's outputs for them. It is made once for a function (or a conversion) and serves all
// variants.
//
// Inputs are seeded and respect what their uses demand (indices in range). Where the reference's
// outputs are mostly zeros or NaN, so that agreement would prove little, other data is tried. What
// a variant may err by follows from the function, the inputs and what the variant rounds.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/compile_kernel.h"
#include "cost/task.h"
#include "measure/guarded_buffer.h"
#include "verify/rounding_error.h"

namespace collage {

// How far outputs are from the reference's; of the worst output each.
struct Agreement {
  double error = 0;            // root mean square, as a part of that of the output
  double of_allowed = 0;       // of an element, as a part of what is allowed for it
  double mean_of_allowed = 0;  // root mean square, as a part of the allowed one
};

class Subject {
 public:
  static Result<Subject> of_function(const MeasureTask& task);
  // A tensor that changes from task.from to task.to.
  static Result<Subject> of_conversion(const MeasureTask& task);

  const Function& function() const { return function_; }  // null for a conversion
  const std::vector<TensorType>& inputs() const { return input_types_; }
  const std::vector<TensorType>& outputs() const { return output_types_; }

  Status check_fit(const Variant& variant) const {
    return collage::check_fit(variant, input_types_, output_types_);
  }
  // Read-only; shared by all variants that ask for the same encoding.
  Result<std::shared_ptr<GuardedBuffer>> input(size_t index, const Encoding& encoding,
                                               GuardedBuffer::Side side);
  // What the variant's outputs may err by, before a change of their type.
  Result<std::vector<Tolerance>> tolerances(const Variant& variant) const;
  // Whether raw outputs in the variant's encodings agree with the reference, the padding of blocked
  // layouts included; what is wrong when not.
  Result<Agreement> check_outputs(const Variant& variant,
                                  const std::vector<GuardedBuffer>& outputs) const;

 private:
  Function function_;
  CompileOptions options_;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<Tensor> inputs_, expected_;
  std::shared_ptr<RoundingErrors> errors_;  // null for a conversion
  std::map<std::tuple<size_t, std::string, GuardedBuffer::Side>, std::shared_ptr<GuardedBuffer>>
      encoded_;
};

}  // namespace collage
