#include "measure/subject.h"

#include <algorithm>
#include <cstring>

#include "measure/host_conversion.h"
#include "verify/check_seed.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {

Result<Subject> Subject::of_function(const std::string& text, const CompileOptions& options) {
  const std::shared_ptr<ReferenceResults> results =
      TRY(ReferenceCache::instance().results_of(text));
  Subject subject(results->function, options);
  subject.results_ = results;
  subject.inputs_ = results->errors.inputs();
  subject.expected_ = results->errors.expected();
  return subject;
}

Subject::Subject(Function function, const CompileOptions& options)
    : function_(std::move(function)), options_(options) {
  for (const Expr& param : function_->params) input_types_.push_back(param->tensor_type());
  output_types_ = function_->result_type().leaves();
}

Result<Subject> Subject::unchecked(Function function, const CompileOptions& options) {
  Subject subject(std::move(function), options);
  subject.inputs_ = TRY(synthetic_inputs(subject.function_, check_seed()));
  return subject;
}

Result<Subject> Subject::of_conversion(const TensorType& type, const CompileOptions& options) {
  Subject subject;
  subject.options_ = options;
  subject.input_types_ = subject.output_types_ = {type};
  subject.inputs_ = {TRY(synthetic_constant(type, 3))};
  subject.expected_ = subject.inputs_;
  return subject;
}

Result<std::shared_ptr<GuardedBuffer>> Subject::input(size_t index, const Encoding& encoding,
                                                      GuardedBuffer::Side side,
                                                      TrialInputs inputs) {
  auto [it, inserted] = encoded_.try_emplace({index, encoding.to_string(), side, inputs});
  if (inserted) {
    const TensorType& type = input_types_[index];
    const Tensor& plain =
        inputs == TrialInputs::kEnds ? results_->at_ends->inputs()[index] : inputs_[index];
    Tensor data =
        encoding == plain_encoding(type)
            ? plain
            : TRY(convert_on_host(plain.raw(), type, plain_encoding(type), encoding, options_));
    auto buffer = std::make_shared<GuardedBuffer>(
        TRY(GuardedBuffer::allocate(data.bytes(), side, "input " + std::to_string(index))));
    if (data.bytes() > 0) std::memcpy(buffer->data(), data.raw(), data.bytes());
    buffer->make_read_only();
    it->second = std::move(buffer);
  }
  return it->second;
}

bool Subject::knows_ends(const Variant& variant) const {
  return results_ != nullptr && results_->at_ends && !variant.lowered();
}

Result<Difference> Subject::compare(size_t output, const Tensor& actual, const Variant& variant,
                                    TrialInputs inputs) const {
  const Rounding rounding = variant.rounding;
  if (inputs == TrialInputs::kEnds)
    return results_->at_ends->compare_at_ends(output, actual, rounding);
  if (results_ != nullptr && quickly_ && !variant.lowered()) {
    const Tolerance plain{.of_scale = 1e-5, .relative = 1e-5};
    const Difference difference = compare_tensors(actual, expected_[output], plain);
    if (difference.within) return difference;
  }
  if (results_ != nullptr) return results_->errors.compare(output, actual, rounding);
  return compare_tensors(actual, expected_[output],
                         conversion_tolerance(output_types_[0].dtype, variant.outputs[0].dtype));
}

Result<Agreement> Subject::check_outputs(const Variant& variant,
                                         const std::vector<GuardedBuffer>& outputs,
                                         TrialInputs inputs) const {
  Agreement worst;
  for (size_t i = 0; i < output_types_.size(); ++i) {
    const TensorType& type = output_types_[i];
    const Encoding& encoding = variant.outputs[i];
    Encoding own = plain_encoding(type);
    Tensor converted;
    void* data = const_cast<char*>(outputs[i].data());
    if (!(encoding == own)) {
      converted = TRY(convert_on_host(data, type, encoding, own, options_));
      data = converted.raw();
    }
    Tensor actual = Tensor::borrow(type.dtype, type.shape, data);
    const Difference difference =
        is_unchecked() ? Difference{} : TRY(compare(i, actual, variant, inputs));
    worst.error = std::max(worst.error, difference.rms_rel);
    worst.of_allowed = std::max(worst.of_allowed, difference.worst_of_allowed);
    worst.loses_nan |= difference.lost_nan > 0;
    worst.spreads_nan |= difference.spread_nan > 0;
    worst.mean_of_allowed = std::max(worst.mean_of_allowed, difference.mean_of_allowed);
    if (!difference.within)
      return error(ErrorCode::kVerification, "wrong result: output {} {} (seed {})", i,
                   difference.reason, check_seed());
    if (outputs[i].bytes() >
        static_cast<size_t>(num_elements(type.shape)) * dtype_size(encoding.dtype)) {
      // Readers of a blocked layout rely on its padding being zero.
      Tensor again = TRY(convert_on_host(data, type, own, encoding, options_));
      const bool same = std::memcmp(again.raw(), outputs[i].data(), outputs[i].bytes()) == 0;
      if (inputs == TrialInputs::kEnds) {
        worst.spreads_nan |= !same;  // weights of zero, times what is not finite
      } else if (!same) {
        return error(ErrorCode::kVerification, "wrong result: the padding of output {} is not zero",
                     i);
      }
    }
  }
  return worst;
}

}  // namespace collage
