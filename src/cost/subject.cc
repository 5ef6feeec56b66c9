#include "cost/subject.h"

#include <cmath>
#include <cstring>

#include "cost/comparison.h"
#include "cost/synthetic.h"
#include "ir/text_parser.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"

namespace collage {

namespace {

Encoding plain(const TensorType& type) { return {type.dtype, Layout(), VirtualDevice()}; }

size_t encoded_bytes(const TensorType& type, const Encoding& encoding) {
  return encoding.layout.physical_bytes(type.shape, encoding.dtype);
}

// Data in another encoding, by the host backend's conversions.
Result<Tensor> convert(const void* data, const TensorType& type, const Encoding& from,
                       const Encoding& to, const CompileOptions& options) {
  for (Backend* backend : all_backends()) {
    if (!backend->is_host()) continue;
    std::unique_ptr<Kernel> kernel = TRY(backend->compile_conversion(type, from, to, options));
    Tensor result =
        TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(encoded_bytes(type, to))}));
    Tensor workspace =
        TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(kernel->workspace_bytes())}));
    void* input = const_cast<void*>(data);
    void* output = result.raw();
    TRY(kernel->run({&input, &output, workspace.raw()}));
    return result;
  }
  return internal_error("no host backend is registered");
}

// Whether agreement with these outputs proves something: enough elements that are neither zero nor
// NaN.
bool informative(const std::vector<Tensor>& outputs) {
  for (const Tensor& output : outputs) {
    int64_t telling = 0, count = output.size();
    for (int64_t i = 0; i < count && telling * 20 < count; ++i) {
      double value = output.element_as_double(i);
      telling += value != 0 && !std::isnan(value);
    }
    if (telling * 20 < count) return false;
  }
  return true;
}

// What a conversion may change: nothing, or what the smaller of two float types cannot hold.
Tolerance conversion_tolerance(DType from, DType to) {
  auto unit = [](DType dtype) {
    return dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0;
  };
  return {0, 0, std::max(unit(from), unit(to))};
}

}  // namespace

Result<Subject> Subject::of_function(const MeasureTask& task) {
  uint64_t seed = 1;
  ParseOptions options;
  options.constant = [&seed](const TensorType& type, size_t) {
    return synthetic_constant(type, seed++);
  };
  Subject subject;
  subject.function_ = TRY(parse_function(task.function_text, options));
  subject.options_ = task.options;
  for (const Expr& param : subject.function_->params)
    subject.input_types_.push_back(param->tensor_type());
  subject.output_types_ = subject.function_->result_type().leaves();
  Function flat = TRY(inline_calls(subject.function_));
  constexpr SyntheticRange kRanges[] = {{-1, 1}, {0.1f, 1}, {-4, 4}};
  for (const SyntheticRange& range : kRanges) {
    std::vector<Tensor> inputs = TRY(synthetic_inputs(subject.function_, 7, range));
    std::vector<Tensor> expected = TRY(interpret(flat, inputs));
    bool good = informative(expected);
    if (good || subject.expected_.empty()) {
      subject.inputs_ = std::move(inputs);
      subject.expected_ = std::move(expected);
    }
    if (good) break;
  }
  return subject;
}

Result<Subject> Subject::of_conversion(const MeasureTask& task) {
  Subject subject;
  subject.options_ = task.options;
  subject.input_types_ = subject.output_types_ = {task.type};
  subject.inputs_ = {TRY(synthetic_constant(task.type, 3))};
  subject.expected_ = subject.inputs_;
  return subject;
}

Status Subject::check_fit(const Variant& variant) const {
  auto check = [](const char* what, const std::vector<Encoding>& encodings,
                  const std::vector<TensorType>& types) -> Status {
    if (encodings.size() != types.size())
      return internal_error("the variant has {} {}s, the function {}", encodings.size(), what,
                            types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (!encodings[i].layout.fits(static_cast<int64_t>(types[i].shape.size())))
        return internal_error("the variant's {} {} is {}, the function's has rank {}", what, i,
                              encodings[i].to_string(), types[i].shape.size());
    return {};
  };
  TRY(check("input", variant.inputs, input_types_));
  return check("output", variant.outputs, output_types_);
}

Result<std::shared_ptr<GuardedBuffer>> Subject::input(size_t index, const Encoding& encoding,
                                                      GuardedBuffer::Side side) {
  auto [it, inserted] = encoded_.try_emplace({index, encoding.to_string(), side});
  if (inserted) {
    const TensorType& type = input_types_[index];
    Tensor data = encoding == plain(type)
                      ? inputs_[index]
                      : TRY(convert(inputs_[index].raw(), type, plain(type), encoding, options_));
    auto buffer = std::make_shared<GuardedBuffer>(
        TRY(GuardedBuffer::allocate(data.bytes(), side, "input " + std::to_string(index))));
    if (data.bytes() > 0) std::memcpy(buffer->data(), data.raw(), data.bytes());
    buffer->make_read_only();
    it->second = std::move(buffer);
  }
  return it->second;
}

Status Subject::check_outputs(const Variant& variant,
                              const std::vector<GuardedBuffer>& outputs) const {
  for (size_t i = 0; i < output_types_.size(); ++i) {
    const TensorType& type = output_types_[i];
    const Encoding& encoding = variant.outputs[i];
    Encoding own = plain(type);
    Tensor converted;
    void* data = const_cast<char*>(outputs[i].data());
    if (!(encoding == own)) {
      converted = TRY(convert(data, type, encoding, own, options_));
      data = converted.raw();
    }
    Tensor actual = Tensor::borrow(type.dtype, type.shape, data);
    Tolerance tolerance = function_ != nullptr ? candidate_tolerance(function_, variant.relaxed)
                                               : conversion_tolerance(type.dtype, encoding.dtype);
    Difference difference = compare_tensors(actual, expected_[i], tolerance);
    if (!difference.within)
      return error(ErrorCode::kVerification, "wrong result: output {} {}", i, difference.reason);
    if (outputs[i].bytes() >
        static_cast<size_t>(num_elements(type.shape)) * dtype_size(encoding.dtype)) {
      // Readers of a blocked layout rely on its padding being zero.
      Tensor again = TRY(convert(data, type, own, encoding, options_));
      if (std::memcmp(again.raw(), outputs[i].data(), outputs[i].bytes()) != 0)
        return error(ErrorCode::kVerification, "wrong result: the padding of output {} is not zero",
                     i);
    }
  }
  return {};
}

}  // namespace collage
