// A converter turns one operator call into OpenVINO nodes. Each family of operators has a table of
// rows {operator, element types, function}; operators without a row, other element types and
// refusals of a function are left to other backends, with the reason.
//
// Converters see the call's arguments flattened (tuples become their fields) and return one output
// a result leaf. The translator checks the outputs' types, so a converter need not.
#pragma once

#include <openvino/op/constant.hpp>
#include <openvino/openvino.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/op.h"

namespace collage::openvino {

using Value = ov::Output<ov::Node>;

// Sets of element types.
enum TypeSet : unsigned {
  kFloat = 1,  // float32
  kInt = 2,    // int32
  kByte = 4,   // int8, uint8
  kBool = 8,
  kLong = 16,  // int64, of which the CPU plugin keeps 32 bits once it is more than an argument
  kNumber = kFloat | kInt,
  kAny = kFloat | kInt | kByte | kBool,
};

class CallView {
 public:
  CallView(const CallNode& call, const ov::OutputVector& inputs);

  const CallNode& call;
  const Attrs& attrs;
  size_t size() const { return inputs_.size(); }
  const Value& operator[](size_t index) const { return inputs_[index]; }
  const ov::OutputVector& inputs() const { return inputs_; }
  const TensorType& type(size_t index) const { return types_[index]; }
  const Shape& shape(size_t index) const { return types_[index].shape; }
  int64_t rank(size_t index) const { return static_cast<int64_t>(shape(index).size()); }
  // The result leaves.
  const std::vector<TensorType>& results() const { return results_; }
  const TensorType& result() const { return results_[0]; }
  // Returns whether that argument's value is known when compiling.
  bool is_constant(size_t index) const;
  // Returns an axis attribute, counted from the start.
  int64_t axis(std::string_view name, int64_t rank) const;
  // Returns all axes for None.
  Ints axes(std::string_view name, int64_t rank) const;

 private:
  const ov::OutputVector& inputs_;
  std::vector<TensorType> types_, results_;
};

using ConvertFunction = Result<ov::OutputVector> (*)(const CallView&);
struct ConverterRow {
  std::string_view op;
  unsigned types;  // TypeSet: of every argument and result
  ConvertFunction convert;
  // The leaf, counted over the arguments and then the results, that holds positions: int32 or int64
  // regardless of `types`, since positions in a tensor fit in 32 bits.
  std::optional<size_t> positions = std::nullopt;
};
using ConverterTable = std::vector<ConverterRow>;

ConverterTable conv_converters();
ConverterTable elementwise_converters();
ConverterTable index_converters();
ConverterTable matmul_converters();
ConverterTable norm_converters();
ConverterTable pool_converters();
ConverterTable quantised_converters();
ConverterTable recurrent_converters();
ConverterTable reduce_converters();
ConverterTable resize_converters();
ConverterTable sample_converters();
ConverterTable shape_converters();

// ---- What converters share.

template <typename Node, typename... Args>
Value make(Args&&... args) {
  return std::make_shared<Node>(std::forward<Args>(args)...)->output(0);
}
inline ov::OutputVector one(Value value) { return {std::move(value)}; }

Value ints(const Ints& values);  // a one-dimensional int64 constant
Value int_scalar(int64_t value);
// Makes a scalar constant of the element type of `like`.
Value scalar(double value, const Value& like);
// Returns the same elements in another shape: a constant stays one, over the same memory.
Value reshaped(const Value& value, const Shape& shape);
// Reshapes a 1-D tensor to [1, …, n, …, 1], `n` at `axis` of `rank`, so that it broadcasts.
Value along_axis(const Value& value, int64_t axis, int64_t rank);

ov::element::Type element_type(
    DType dtype);  // undefined where OpenVINO's CPU plugin has none of its own
template <typename To>
To cast_ints(const Ints& values) {
  return To(values.begin(), values.end());
}
// `padding` holds all begins, then all ends.
template <typename To>
To pads_begin(const Ints& padding) {
  return To(padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(padding.size() / 2));
}
template <typename To>
To pads_end(const Ints& padding) {
  return To(padding.begin() + static_cast<std::ptrdiff_t>(padding.size() / 2), padding.end());
}

}  // namespace collage::openvino
